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
#define CELL_SPAN	  56 /* block, bit and epoch in one */
#define CELL_SPAN_BIT	  58
#define CELL_SHAPE	  59
#define CELL_VALUES	  64 /* twelve of 16 bits */
#define VALUES_SIZE	  24
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
#define SLOT_EXITS	  56
#define SLOT_BUCKET	  64
#define BUCKETS		  120
#define PROC_DONE	  8
#define PROC_QUIET	  12
#define RING_RING	  4
#define RING_ENDED	  24
#define REC_PROC	  8
#define REC_MOST	  16
#define REC_STACK	  18
#define REC_CALLS	  56
#define REC_LOADER	  64
#define REC_PYTHON	  72
#define REC_KEPT	  1024
#define KEPT_BITS	  5
#define KEPT_SHIFT	  6 /* log2 of its bytes */
#define KEPT_AT		  0
#define KEPT_HASH	  56
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
#define FLAG_SPANS	  4
#define FLAG_DELAY_EXIT	  8
#define SPAN_CALLS	  8
#define SPAN_TICKS	  16
#define SPAN_OWN	  24
#define SPAN_OUTER	  32
#define SPAN_INV_LEAST	  40
#define SPAN_MOST	  48
#define SPAN_APART	  56
#define SPAN_LAST	  64
#define SPAN_SUM	  72
#define SPAN_SUMMED	  168
#define SPAN_BUCKET	  512
#define SPAN_BUCKETS	  1216
#define FUNC_CALLS	  0
#define FUNC_TICKS	  8
#define FUNC_OWN	  16
#define FUNC_MOST	  24
#define FUNC_INV_LEAST	  32
#define FUNC_APART	  40
#define FUNC_BUCKET	  64
#define FUNC_SHIFT	  10 /* log2 of its bytes */
#define CALL_AT		  0
#define CALL_CHECK	  8
#define CALL_START	  16
#define CALL_PARENT	  24
#define CALL_PARENT_AT	  32
#define CALL_THREAD	  36
#define CALL_WITHIN	  40
#define CALL_CHILDREN	  48
#define CALL_COST	  56
#define CALL_NEXT_WAY	  64
#define CALL_SET_BITS	  12
#define CALL_SET_SHIFT	  7	  /* log2 of a set's bytes */
#define CALL_LAST	  0x7ffc0 /* offset of the last entry */
#define THREADS_OFF	  0x80000
#define ARGUMENTS_OFF	  0xc0000  /* from a call to its arguments */
#define STACKED_OFF	  0x140000 /* ... and to its words that are not in registers */
#define STACKED_KNOWN	  (STACKED_OFF + 40)
#define SHAPE_STACKED	  3
#define SHAPE_TEXT	  6
#define TEXT_ZERO	  1
#define TEXT_POSITIVE	  2
#define STACK_MOST	  0x4000000 /* bytes of a stack */
#define CALLS_GAVE_WAY	  (THREADS_OFF + 32)
#define CALLS_LOST	  (THREADS_OFF + 40)
#define GROUP_BITS	  10 /* log2 of the number of groups of threads */
#define GROUP_SHIFT	  8  /* log2 of a group's bytes */
#define GROUP_SIZE	  4
#define THREAD_SIZE	  64
#define THREAD_OWNER	  0
#define THREAD_CALL	  8
#define THREAD_CALL_AT	  16
#define THREAD_WITHIN	  24
#define THREAD_CHUNK	  48
#define TRACE_OFFERED	  0
#define TRACE_MIN	  8
#define TRACE_LIST	  64
#define TAKEN_TAKEN	  0
#define TAKEN_LOST	  8
#define TAKEN_UNSEEN	  16
#define TAKEN_SHORTER	  24
#define TAKEN_SIZE	  4096
#define CHUNK_USED	  0
#define CHUNK_OWNER	  8
#define CHUNK_CALLS	  16
#define CHUNK_LIMIT	  24
#define CHUNK_SHORTER	  32
#define CHUNK_EVENTS	  64
#define CHUNK_SHIFT	  12  /* log2 of its bytes */
#define EVENTS		  168 /* in a chunk */
#define EVENT_TICKS	  0
#define EVENT_START	  8
#define EVENT_WHAT	  16 /* function, span_bit and kind in one */
#define EVENT_BIT_SHIFT	  32
#define EVENT_KIND_SHIFT  40
#define EVENT_MORE_SHIFT  48
#define EVENT_RETURNED	  56 /* a bit */
#define EVENT_STACKED	  57
#define EVENT_KNOWN	  23
#define KNOWN_STACK	  4
#define EVENT_SIZE	  24
#define EVENT_MORE	  (-2) /* the mark of a place with values */
#define EVENT_CALL	  1
#define EVENT_DELAY	  2
#define STACKS_OFFERED	  0
#define STACKS_LIST	  64
#define STACKS_TAKEN	  0
#define STACKS_SIZE	  4096
#define STACK_OWNER	  0
#define STACK_CALLS	  8
#define STACK_START	  16
#define STACK_LENGTH	  24 /* and STACK_END, in one */
#define STACK_END	  28
#define STACK_SP	  32
#define STACK_BP	  40
#define STACK_BX	  48
#define STACK_R12	  56
#define STACK_R13	  64
#define STACK_R14	  72
#define STACK_R15	  80
#define STACK_FRAMES	  88 /* and frames_end, in one */
#define STACK_WORDS	  128
#define FRAMES_FAULT	  5
#define STACK_CUT	  0
#define STACK_WHOLE	  1
#define STACK_PAGE	  2
#define KIND_OPEN	  1
#define KIND_CLOSE	  2
#define KIND_KEEP	  4  /* of an entry: its arguments are kept */
#define KIND_VALUES	  8  /* of an exit: its values are recorded */
#define KIND_RETURNS	  16 /* ... and it is a ret, not a jump */
#define KIND_RESULT	  4  /* of an exit: the first argument points to a result */
#define KIND_FOLLOW	  5  /* from this bit on: the argument to be followed, or with a text */
#define FOLLOW_RESULT	  7
#define TEXT_MOST	  1008
#define VALUE_SUM	  16
#define VALUE_SIGNED	  32
#define VALUE_BOOL	  64
#define VALUE_UPPER	  128
#define VALUE_RETURNED	  7
#define VALUE_CALLER	  9
#define VALUE_STACKED	  10
#define SYS_futex	  202

#endif
