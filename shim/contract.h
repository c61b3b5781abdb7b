/* SPDX-License-Identifier: MIT */
/* REPLAYSHIM_CONTRACT: read and told to the engine, once, before the program's first call is followed. */
#ifndef RS_SHIM_CONTRACT_H
#define RS_SHIM_CONTRACT_H

/*
 * After the begin line. A contract that cannot be read is logged and recorded as refused; the run goes on with
 * conservative preservation, and its verdict is that it cannot be told.
 */
void rs_contract_start(void);

#endif
