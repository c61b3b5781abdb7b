/* SPDX-License-Identifier: MIT */
/* Names of segments and regions: any text of a program's, in the length that plans, contracts and records have. No state. */
#ifndef RS_TRACKER_NAME_H
#define RS_TRACKER_NAME_H

#include <stddef.h>

#define RS_NAME_BYTES 128u /* with its NUL */

/*
 * The first len bytes of text. What is no UTF-8 is taken for Latin-1, as everywhere where such text is written: then the name
 * is what a contract or a plan has. Where it is too long: its beginning and a digest of all, so that two stay two.
 */
void rs_name_fit(char out[RS_NAME_BYTES], const char *text, size_t len);

#endif
