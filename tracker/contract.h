/* SPDX-License-Identifier: MIT */
/*
 * The reader of contracts, and what of them the engine is told. The document: planner/contract.schema.json.
 *
 * A contract is taken whole or not at all: it is read and checked first, and told to the engine afterwards.
 * Fields that are not known are passed over. Errors name line, column and field. Nothing here is global; the shim calls it
 * once, at its start, before the program can run a segment.
 */
#ifndef RS_TRACKER_CONTRACT_H
#define RS_TRACKER_CONTRACT_H

#include <stddef.h>

#include "tracker/engine.h"
#include "tracker/jdoc.h"

#define RS_CONTRACT_VERSION  1
#define RS_CONTRACT_MAX_SIZE (64u << 20)

struct rs_contract;

/* From memory; the text is changed, and must live as long as the contract. 0, -EINVAL and *ret_error, -ENOMEM. */
int rs_contract_parse(char *text, size_t size, struct rs_contract **ret_contract,
		      struct rs_jdoc_error *ret_error);
/* The file is read once. Also what the system says, with *ret_error's text. */
int rs_contract_load(const char *path, struct rs_contract **ret_contract,
		     struct rs_jdoc_error *ret_error);
void rs_contract_free(struct rs_contract *c);

uint64_t rs_contract_segments(const struct rs_contract *c);
uint64_t rs_contract_terms(const struct rs_contract *c);
const char *rs_contract_fingerprint(const struct rs_contract *c);

/*
 * Tell the engine. A segment that the contract does not have, or has only in part, is preserved as without one; the
 * former is another program's (RS081). -ENOMEM: told in part, which can only reject more.
 */
int rs_contract_apply(const struct rs_contract *c, struct rs_engine *e);

extern const char *const rs_option_names[RS_OPTIONS], *const rs_restore_names[RS_RESTORES];

#endif
