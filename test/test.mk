# SPDX-License-Identifier: MIT
# How the tests, the victims and the bench are built and run. Included by the Makefile.

# Victims are built without sanitizers and without the project's own code: they are strangers.
VICTIM_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -MMD -MP
VICTIM_LIBS := -lpthread -ldl -lrt

VICTIM_SRCS := $(filter-out test/victim/calls-twin.c test/victim/victim-%.c,$(wildcard test/victim/*.c))
VICTIM_NAMES := $(VICTIM_SRCS:test/victim/%.c=%)
VICTIMS := $(patsubst %,$(BUILD)/test/victim/%,$(VICTIM_NAMES)) \
	$(BUILD)/test/victim/victim-lib.so $(BUILD)/test/victim/victim-ifunc-lib.so \
	$(BUILD)/test/victim/victim-pycall.so \
	$(BUILD)/test/victim/libcuda.so.1 $(BUILD)/test/victim/libcupti.so.12 $(BUILD)/test/victim/libnccl.so.2 $(BUILD)/test/victim/cudart \
	$(BUILD)/test/victim/libstub-one.so $(BUILD)/test/victim/libstub-two.so $(BUILD)/test/victim/stacks-pointers \
	$(BUILD)/test/victim/victim-slow-post.so $(BUILD)/test/victim/victim-slow-load.so $(BUILD)/test/victim/libc-slow-signal.so \
	$(BUILD)/test/victim/throw $(BUILD)/test/victim/stacks-throw $(BUILD)/test/victim/torture $(BUILD)/test/victim/values $(BUILD)/test/victim/arguments $(BUILD)/test/victim/ifunc-static $(BUILD)/test/victim/musl.built
TOOLS := $(patsubst test/tool/%.c,$(BUILD)/test/tool/%,$(wildcard test/tool/*.c))

FUZZERS := $(wildcard test/fuzz/fuzz-*.c)
FUZZ_SECONDS ?= 30

$(BUILD)/test/victim/%: test/victim/%.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -o $@ $< $(VICTIM_LIBS)

# Binding at the first call takes more of a stack than some of its threads have.
$(BUILD)/test/victim/lives: VICTIM_LIBS += -Wl,-z,now

# Cancelled threads run what stands in the way.
$(BUILD)/test/victim/unwinds: VICTIM_CFLAGS += -fexceptions

# Without the unwinder's tables: frame pointers only.
$(BUILD)/test/victim/stacks-pointers: test/victim/stacks.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -DVICTIM_POINTERS -fno-omit-frame-pointer -fno-asynchronous-unwind-tables \
		-fno-unwind-tables -o $@ $< $(VICTIM_LIBS)

$(BUILD)/test/victim/calls: test/victim/calls.c test/victim/calls-twin.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -o $@ $^ $(VICTIM_LIBS)

$(BUILD)/test/victim/sweep-shapes: test/victim/sweep-shapes.c test/victim/victim-sweep-server.c \
		test/victim/victim-sweep-queue.c test/victim/victim-sweep-often.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -o $@ $(filter %.c,$^) $(VICTIM_LIBS)

$(BUILD)/test/victim/asm-shapes: test/victim/asm-shapes.c test/victim/arch/$(ARCH)/shapes.S
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -o $@ $^ $(VICTIM_LIBS)

$(BUILD)/test/victim/victim-lib.so: test/victim/victim-lib.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -fPIC -shared -Wl,-soname,victim-lib.so.1 -o $@ $<

$(BUILD)/test/victim/victim-pycall.so \
$(BUILD)/test/victim/victim-ifunc-lib.so $(BUILD)/test/victim/victim-slow-post.so \
$(BUILD)/test/victim/victim-slow-load.so: \
$(BUILD)/test/victim/%.so: test/victim/%.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -fPIC -shared -o $@ $<

$(BUILD)/test/victim/libcuda.so.1: test/victim/victim-cuda.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -fPIC -shared -Wl,-soname,libcuda.so.1 -o $@ $<

$(BUILD)/test/victim/libcupti.so.12: test/victim/victim-cupti.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -fPIC -shared -Wl,-soname,libcupti.so.12 -o $@ $< -lpthread -ldl

$(BUILD)/test/victim/libnccl.so.2: test/victim/victim-nccl.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -fPIC -shared -Wl,-soname,libnccl.so.2 -o $@ $<

$(BUILD)/test/victim/libcudart.so.13: test/victim/victim-cudart.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -fPIC -shared -Wl,-soname,libcudart.so.13 -o $@ $<

$(BUILD)/test/victim/cudart: test/victim/cudart.cc $(BUILD)/test/victim/libcudart.so.13
	@mkdir -p $(@D)
	@if command -v $(firstword $(CXX)) >/dev/null; then echo $(CXX) -o $@ $<; \
		$(CXX) -O2 -g -Wall -Wextra -o $@ $^ -ldl -Wl,-rpath,'$$ORIGIN'; \
	else echo 'no C++ compiler: its tests are skipped'; fi

$(BUILD)/test/victim/libstub-%.so: test/victim/victim-stub.cc
	@mkdir -p $(@D)
	@if command -v $(firstword $(CXX)) >/dev/null; then echo $(CXX) -shared -o $@ $<; \
		$(CXX) -O2 -g -Wall -Wextra -fPIC -shared -DSTUB=stub_of_$* -o $@ $<; fi

# Named as a part of the C library, which it stands in for: sbinject takes other libraries for the
# program's, in which a thread holds none of the interpreter's locks.
$(BUILD)/test/victim/libc-slow-signal.so: test/victim/victim-slow-signal.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -fPIC -shared -o $@ $<

# Exports what nobody refers to.
$(BUILD)/test/victim/ifunc: test/victim/ifunc.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -rdynamic -o $@ $< $(VICTIM_LIBS)

# Where there is no static C library its cases are skipped.
$(BUILD)/test/victim/ifunc-static: test/victim/ifunc.c
	@mkdir -p $(@D)
	@echo $(CC) -static -o $@ $<; \
		$(CC) $(VICTIM_CFLAGS) -DVICTIM_STATIC -static -o $@ $< 2>/dev/null || \
		{ rm -f $@; echo "no static C library: $@ is not built"; }

# The only C++: built where there is a C++ compiler; their cases are skipped where there is none.
$(BUILD)/test/victim/throw $(BUILD)/test/victim/stacks-throw $(BUILD)/test/victim/torture $(BUILD)/test/victim/values $(BUILD)/test/victim/arguments: $(BUILD)/test/victim/%: test/victim/%.cc
	@mkdir -p $(@D)
	@if command -v $(firstword $(CXX)) >/dev/null; then echo $(CXX) -O2 -g -o $@ $<; \
		$(CXX) -O2 -g -Wall -Wextra -o $@ $< -lpthread; \
	else rm -f $@; echo "no C++ compiler: $@ is not built"; fi

# The same victims with another C library, where musl-gcc is; its case is skipped where it is not.
MUSL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g
$(BUILD)/test/victim/musl.built: $(addprefix test/victim/,calls.c calls-twin.c tree.c later.c victim-lib.c \
		victim.h victim-lib.h)
	@mkdir -p $(@D)/musl
	@if command -v musl-gcc >/dev/null; then set -e; echo musl-gcc -o $(@D)/musl/...; \
		musl-gcc $(MUSL_CFLAGS) -o $(@D)/musl/calls test/victim/calls.c test/victim/calls-twin.c; \
		musl-gcc $(MUSL_CFLAGS) -static -o $(@D)/musl/calls-static test/victim/calls.c \
			test/victim/calls-twin.c; \
		musl-gcc $(MUSL_CFLAGS) -o $(@D)/musl/tree test/victim/tree.c; \
		musl-gcc $(MUSL_CFLAGS) -o $(@D)/musl/later test/victim/later.c; \
		musl-gcc $(MUSL_CFLAGS) -fPIC -shared -Wl,-soname,victim-lib.so.1 \
			-o $(@D)/musl/victim-lib.so test/victim/victim-lib.c; \
		touch $@; \
	else rm -rf $(@D)/musl; echo "no musl-gcc: $(@D)/musl is not built"; fi

$(BUILD)/test/tool/%: test/tool/%.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -o $@ $<

$(BUILD)/test/tool/jget: test/tool/jget.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) $(PKG_CFLAGS) -o $@ $< -ljansson

victims: $(VICTIMS) $(TOOLS) ## build the test programs
	@:

check: ## install what is missing, build, run every test
	@scripts/deps.sh build check
	@scripts/deps.sh -t uprobe tests emulator
	@[ "$$(id -u)" -ne 0 ] || scripts/emulator.sh || echo 'without the kernels: their cases are skipped'
	@[ "$$(id -u)" -ne 0 ] || scripts/perfetto.sh || echo 'without Perfetto: its case is skipped'
	@+$(MAKE_ALL) all units victims $(BUILD)/test/prove/prove
	@+$(MAKE_ALL) FAULT=1 all
	@test/run -b $(BUILD)

check-quick: ## the unit tests and the quick cases, in about three minutes
	@scripts/deps.sh build check
	@+$(MAKE_ALL) all units victims
	@test/run -b $(BUILD) -q

check-san: ## the same with address and undefined-behaviour sanitizers in sbinject
	@scripts/deps.sh build check
	@+$(MAKE_ALL) SAN=1 all units victims build-san/test/prove/prove
	@+$(MAKE_ALL) SAN=1 FAULT=1 all
	@test/run -b build-san

check-vllm: ## on a real vLLM (test/vllm/README.md): installs it at the first run, 6 GB
	@scripts/deps.sh build check
	@+$(MAKE_ALL) all victims
	@test/vllm/run.sh $(BUILD) $(VLLM_CHECKS)

check-gpu: ## on a real GPU (test/gpu/README.md): skipped where there is none
	@scripts/deps.sh build
	@+$(MAKE_ALL) all
	@test/gpu/run.sh $(BUILD) $(GPU_CHECKS)

SOAK_SECONDS ?= 600
soak: ## attach and detach for SOAK_SECONDS, at least 1000 times: no error, no leak; and long forms of cases
	@scripts/deps.sh build check
	@+$(MAKE_ALL) all victims
	@SOAK_SECONDS=$(SOAK_SECONDS) SOAK_CYCLES=1000 test/run -b $(BUILD) -v case/soak \
		$$(grep -l '(rounds [0-9]' test/case/*.sh | sed 's/^test\///; s/\.sh$$//')

bench: ## measure everything, peers too; one table and build/bench.json
	@scripts/deps.sh build check
	@scripts/deps.sh -t uprobe bench
	@+$(MAKE_ALL) all victims bench-build
	@$(BUILD)/test/bench/bench -b $(BUILD) $(BENCH_ARGS)
	@test/bench/bench-python.sh $(BUILD)
	@test/bench/bench-sweep.sh $(BUILD)
	@test/bench/bench-ab.sh $(BUILD)

BENCH_SRCS := $(wildcard test/bench/bench*.c)
BENCH_OBJS := $(BENCH_SRCS:%.c=$(BUILD)/%.o)
BENCH_SUBJECTS := $(patsubst %.c,$(BUILD)/%,$(wildcard test/bench/subject*.c))

$(BUILD)/test/bench/bench: $(BENCH_OBJS) $(BUILD)/libsb.a
	$(CC) $(CFLAGS) $(SB_LDFLAGS) -o $@ $^ $(SB_LIBS) -ldl

$(BUILD)/test/bench/%.o: test/bench/%.c
	@mkdir -p $(@D)
	$(CC) $(SB_CFLAGS) $(if $(HAVE_BPF),-DBENCH_BPF) $(CFLAGS) -c -o $@ $<

$(BUILD)/test/bench/subject%: test/bench/subject%.c
	@mkdir -p $(@D)
	$(CC) $(VICTIM_CFLAGS) -o $@ $< $(VICTIM_LIBS)

$(BUILD)/test/bench/count.bpf.o: test/bench/count.bpf.c
	@mkdir -p $(@D)
	clang -O2 -g -target bpf -I/usr/include/$(ARCH)-linux-gnu -c -o $@ $<

bench-build: $(BUILD)/test/bench/bench $(BENCH_SUBJECTS) \
	$(BUILD)/test/prove/prove $(if $(HAVE_BPF),$(BUILD)/test/bench/count.bpf.o)

# The proof of the relocator: prove.h says how.
PROVE_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard test/prove/*.c))

$(BUILD)/test/prove/prove: $(PROVE_OBJS) $(BUILD)/libsb.a
	$(CC) $(CFLAGS) $(SB_LDFLAGS) -o $@ $^ $(SB_LIBS)

fuzz: ## run every fuzz harness for FUZZ_SECONDS
	@scripts/fuzz.sh $(FUZZ_SECONDS) $(FUZZERS)

lint: compile_commands.json ## style and static checks; what the machine lacks is skipped
	@scripts/lint.sh

format: ## lay every C file out as .clang-format says
	clang-format -i $$(find src ctl sweep trace evidence elf inject python test -name '*.[ch]')

.PHONY: format victims check check-quick check-san check-vllm check-gpu soak bench bench-build fuzz lint
-include $(VICTIMS:%=%.d) $(TOOLS:%=%.d) $(PROVE_OBJS:.o=.d) $(BENCH_OBJS:.o=.d)
