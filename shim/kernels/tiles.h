/* SPDX-License-Identifier: MIT */
/*
 * How the kernels that move bytes cut their work: what host and device must agree on.
 *
 * A range is cut into tiles, one for a warp; all but the first begin on a multiple of RS_TILE_LINE of
 * the destination, so that their stores fill whole cache lines. Plain C, and CUDA C.
 */
#ifndef RS_SHIM_KERNELS_TILES_H
#define RS_SHIM_KERNELS_TILES_H

#define RS_TILE	     4096u
#define RS_TILE_LINE 128u

#define RS_TILE_THREADS 128u
#define RS_TILE_WARPS	(RS_TILE_THREADS / 32)

/* Tiles of a range of that many bytes at that address. */
#define RS_TILE_COUNT(addr, bytes) (((bytes) + (addr) % RS_TILE_LINE + RS_TILE - 1) / RS_TILE)

/* Blocks of as many tiles, or of as many of anything that a warp takes. */
#define RS_TILE_BLOCKS(tiles) (((tiles) + RS_TILE_WARPS - 1) / RS_TILE_WARPS)

/* The tables fill what a launch can pass by value: 4096 bytes, and from driver 12.1 on 32764. */
#define RS_MOVE_ROWS	  127
#define RS_MOVE_WIDE_ROWS 1022

/* Pointers of the device. Declared as such: the compiler then knows that they are global. */
struct rs_move_row {
	void *dst;
	const void *src;
	unsigned long long bytes;
	unsigned long long first; /* number of its first tile */
};

#define RS_MOVE_TABLE(name, count)                                                                 \
	struct name {                                                                              \
		unsigned long long rows, tiles;                                                    \
		struct rs_move_row row[count];                                                     \
	}
RS_MOVE_TABLE(rs_move_table, RS_MOVE_ROWS);
RS_MOVE_TABLE(rs_move_wide_table, RS_MOVE_WIDE_ROWS);

/* rs_diff: bytes that one word answers for, and the threads of a block, which takes one page at a time. */
#define RS_DIFF_PAGE	65536u
#define RS_DIFF_THREADS 256u

/* rs_diff_many: a table of 4096 bytes. */
#define RS_DIFF_ROWS 102

struct rs_diff_row {
	const void *a, *b;
	void *out;
	unsigned long long bytes;
	unsigned long long first; /* number of its first page */
};
struct rs_diff_table {
	unsigned long long rows, pages;
	struct rs_diff_row row[RS_DIFF_ROWS];
};

#endif
