/* SPDX-License-Identifier: MIT */
/*
 * Memory behind several addresses: what phys.c, vmm.c, multicast.c, window.c, share.c and sync.c share.
 *
 * Bytes that have more than one address are pages of a shared mapping, so an alias is a second mapping
 * of the same pages and needs no copying. A record of kind SIM_MEM_MAPPED in the address trees is one
 * such mapping: of a handle (struct sim_phys) into a reservation, or of a file (a window).
 * Driver lock held everywhere.
 */
#ifndef SIM_VMM_H
#define SIM_VMM_H

#include "tests/simcuda/sim.h"

#define SIM_GRANULARITY sim_options.granularity
#define SIM_HOST_BIT	(1u << 31) /* in access masks: the host; bit i is device i */

/* ---- vaspace.c: address space apart from the arenas ---- */

uint64_t sim_va_get(uint64_t size, uint64_t align, uint64_t hint); /* inaccessible; 0: none */
void sim_va_put(uint64_t base, uint64_t size);
void sim_va_close(uint64_t base, uint64_t size); /* drop what is mapped there, keep the space */

struct sim_resv {
	struct sim_node node;
	uint64_t base, size;
	uint8_t *shadow; /* initialisation map of the whole reservation, or NULL */
	unsigned mapped; /* mappings in it */
};
extern struct sim_tree sim_resv_tree;

/* ---- phys.c: memory that a handle stands for ---- */

struct sim_multicast;
struct sim_phys {
	unsigned handles; /* references by value of the handle */
	unsigned uses;	  /* by mappings and multicast bindings */
	CUmemAllocationProp prop;
	int dev_id; /* -1: host memory */
	uint64_t size, serial;
	uint8_t *home;	  /* a mapping of all of it that is always accessible */
	uint8_t *written; /* initialisation map, shared like the bytes, or NULL: not checked */
	int fd;		  /* shareable: its memfd; else -1 */
	bool imported;
	struct sim_multicast *mc; /* a multicast object; home is where writes to it land */
};

struct sim_phys *sim_phys_get(CUmemGenericAllocationHandle h); /* NULL: not a live handle */
CUresult sim_phys_new(const CUmemAllocationProp *prop, uint64_t size, struct sim_phys **ret);
void sim_phys_use(struct sim_phys *p);
void sim_phys_unuse(struct sim_phys *p); /* frees it after the last use and handle */

/* ---- vmm.c, window.c: mappings ---- */

enum sim_origin { SIM_MAP_VMM, SIM_MAP_IPC, SIM_MAP_EXTERNAL, SIM_MAP_POOL };

struct sim_mapping {
	enum sim_origin origin;
	uint32_t readers, writers; /* who may; bits as above */
	struct sim_phys *phys;	   /* SIM_MAP_VMM */
	uint64_t offset;	   /* in it */
	struct sim_resv *resv;	   /* SIM_MAP_VMM */
	uint64_t va, va_size;	   /* windows: the pages around it */
	uint64_t key[3];	   /* SIM_MAP_IPC: which memory this is */
	unsigned opens;		   /* SIM_MAP_IPC */
};

bool sim_map_freed(const struct sim_alloc *a); /* by cuMemFree: external and pool memory */
void sim_map_drop(struct sim_alloc *a);	       /* of either sort: unmap and forget */
/* Bytes [offset, offset + size) of a file as device memory of ctx's device. */
CUresult sim_window_open(CUcontext ctx, enum sim_origin origin, int fd, uint64_t offset,
			 uint64_t size, struct sim_alloc **ret);

/* ---- multicast.c ---- */

extern unsigned sim_multicast_live; /* objects: nothing below costs anything while there is none */
void sim_multicast_free(struct sim_phys *p);
CUresult sim_multicast_wait(CUmemGenericAllocationHandle h); /* until its team is complete */
/* Something was written: what went to a multicast mapping reaches the bound memory. */
void sim_multicast_written(uint64_t addr, uint64_t size);

/* What a kernel writes to multicast mappings, noted while it runs. */
struct sim_write_log {
	struct sim_written {
		uint64_t addr, size;
	} * at;
	size_t n, cap;
};
void sim_multicast_note(void *log, uint64_t addr, unsigned bytes, int is_write);
void sim_multicast_flush(struct sim_write_log *log);

/* ---- memory.c, share.c: arenas that other processes may open ---- */

void sim_mem_arena(int dev, uint64_t *ret_base, uint64_t *ret_size);
/* Make [addr, addr + size) of a device's arena pages of its shared file. */
CUresult sim_share_range(int dev, uint64_t addr, uint64_t size);
int sim_share_fd(int dev, uint64_t *ret_nonce); /* the file; made if need be; -1: cannot */
uint64_t sim_share_nonce(const char *link);	/* of the file behind a /proc link, or 0 */
int sim_share_file(const char *what, uint64_t size, uint64_t *ret_nonce); /* a fresh memfd */
void sim_share_dropped(int dev, uint64_t addr, uint64_t size); /* its content is garbage now */

/* ---- sync.c: semaphores and events that other processes see ---- */

struct sim_sync *sim_sync_event(void); /* fresh state of an interprocess event */
void sim_sync_unref(struct sim_sync *s);
uint64_t sim_sync_record(struct sim_sync *s); /* a new record: its ticket */
uint64_t sim_sync_last(struct sim_sync *s);   /* the last record's, by whom it may be; 0: none */
bool sim_sync_done(struct sim_sync *s, uint64_t ticket);
/* A work that signals or awaits one of them. */
int sim_sync_work(enum sim_work_kind kind, struct sim_sync *s, uint64_t value,
		  struct sim_work *ret);
CUresult sim_sync_sems(enum sim_work_kind kind, const CUexternalSemaphore *sems, const void *params,
		       unsigned n, struct sim_work *ret);
int sim_sync_clone(struct sim_work *dst, const struct sim_work *src);
void sim_sync_clear(struct sim_work *w);
bool sim_sync_blocked(const struct sim_work *w);
void sim_sync_run(const struct sim_work *w);

#endif
