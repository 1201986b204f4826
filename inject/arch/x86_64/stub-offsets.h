/* SPDX-License-Identifier: MIT */
#ifndef SB_STUB_OFFSETS_H
#define SB_STUB_OFFSETS_H

/* For stub-code.S: offsets and numbers of page-abi.h, which checks the offsets. */
#define CELL_STATE	  0
#define CELL_FLAGS	  4
#define CELL_DELAY	  8
#define CELL_EVERY	  16
#define CELL_OVERRUN	  24
#define CELL_RESIDUAL_MAX 32
#define CELL_PAUSE	  40
#define CELL_THREADS	  48
#define CELL_CUTS	  56
#define CELL_CUT_TICKS	  64
#define CELL_SLOT	  1024
#define SLOT_OWNER	  0
#define SLOT_HITS	  8
#define SLOT_INJECTED	  16
#define SLOT_OVERRUN	  24
#define SLOT_RESIDUAL	  32
#define SLOT_LAPSED	  40
#define SLOT_MAX	  48
#define SLOT_BUCKET	  64
#define BUCKETS		  120
#define PROC_DONE	  8
#define PROC_QUIET	  12
#define RING_RING	  4
#define RING_ENDED	  24
#define REC_PROC	  8
#define REC_MOST	  16
#define TABLES		  128
#define TABLE_SLOTS	  8192
#define TABLE_SHIFT	  16 /* log2 of a table's bytes */
#define HDR_LEASE	  128
#define HDR_GENERATION	  136
#define HDR_BELL_SPIN	  140
#define TOLD_BELL	  144
#define TOLD_LOST	  148
#define STATE_COUNT	  1
#define STATE_SLOW	  2
#define FLAG_THREADS	  1
#define FLAG_DELAY	  2
#define SYS_futex	  202

#endif
