# SPDX-License-Identifier: MIT
# sbinject. `make help` lists what can be made.

VERSION := 0.1.0
ARCH    ?= $(shell uname -m)
BUILD   ?= build$(if $(SAN),-san)$(if $(FAULT),-fault)
PREFIX  ?= /usr/local
DESTDIR ?=
MANDIR  ?= $(PREFIX)/share/man
COMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
# Looked for beside the program, at ../share/sbinject/presets: PREFIX has both.
PRESETDIR = $(PREFIX)/share/sbinject/presets

CC      ?= cc
CXX     ?= c++
INSTALL ?= install
OBJCOPY ?= objcopy
PKGS    := libelf libdw capstone jansson libcurl libmicrohttpd
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wvla
CFLAGS  ?= -O2 -g

# make in make, on all processors unless this one was told how many.
MAKE_ALL = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

# Asked of pkg-config once, and only when something is compiled: `make deps` runs without it.
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell pkg-config --cflags $(PKGS) 2>/dev/null))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $$(shell pkg-config --libs $(filter-out $(LATE),$(PKGS)) 2>/dev/null))$(PKG_LIBS)

# -fms-extensions: a struct embeds another one without a name (src/session/core.h).
SB_CFLAGS = -std=gnu11 -fms-extensions -Wno-microsoft-anon-tag -D_GNU_SOURCE \
	-DSB_VERSION='"$(VERSION)"' $(WARN) -fno-strict-aliasing \
	-MMD -MP -iquote . $(PKG_CFLAGS)
SB_LIBS = $(PKG_LIBS) -liberty -lpthread -lm

# What a mistake in the programs' own code can be made into. Nothing of it is for code that runs in
# targets, which has flags of its own: ENTRY_CFLAGS here and AGENT_CFLAGS in python/python.mk, and the
# stubs are assembly. HARDEN= leaves it out.
X86 := $(filter x86_64 i%86,$(ARCH))
HARDEN ?= -fPIE -fstack-protector-strong $(if $(X86),-fcf-protection=full) $(if $(strip $(SAN) \
	$(findstring -fsanitize,$(CFLAGS)) $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),,no)),, \
	-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
HARDEN_LD ?= -pie -Wl,-z,relro,-z,now,-z,noexecstack
SB_CFLAGS += $(HARDEN)
SB_LDFLAGS = $(HARDEN_LD)

ifdef SAN
SB_CFLAGS += -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
SB_LDFLAGS += -fsanitize=address,undefined
endif
ifdef FAULT
SB_CFLAGS += -DSB_FAULT_POINTS
endif

# Not linked: loaded when they are used, by the names that this machine's have (src/base/library.h).
LATE := libcurl libmicrohttpd
soname = $(shell readelf -d "$$($(CC) -print-file-name=$(1).so)" 2>/dev/null | sed -n 's/.*SONAME.*\[\(.*\)\]/"\1"/p')
late = $(addprefix -D$(2)=,$(patsubst %,'%',$(call soname,$(1))))
$(BUILD)/src/live/curl.o: SB_CFLAGS += $(call late,libcurl,SB_LIBCURL)
$(BUILD)/src/control/microhttpd.o: SB_CFLAGS += $(call late,libmicrohttpd,SB_LIBMICROHTTPD)

# The uprobe backend, and the evidence: programs for the kernel by clang, loaded by libbpf. Without
# them they are not built in, and say so when they are asked for. WITHOUT_UPROBE=1 leaves both out.
HAVE_BPF := $(if $(WITHOUT_UPROBE),,$(shell pkg-config --exists libbpf 2>/dev/null && \
	command -v clang >/dev/null && echo 1))
UPROBE_PROGRAM := $(BUILD)/inject/uprobe/uprobe.bpf.o
KERNEL_PROGRAM := $(BUILD)/inject/uprobe/kernel.bpf.o
EVIDENCE_PROGRAM := $(BUILD)/evidence/bpf/evidence.bpf.o
EVIDENCE_NET_PROGRAM := $(BUILD)/evidence/bpf/net.bpf.o
EVIDENCE_WITHIN_PROGRAM := $(BUILD)/evidence/bpf/within.bpf.o
EVIDENCE_CACHE_PROGRAM := $(BUILD)/evidence/bpf/cache.bpf.o
EVIDENCE_PROGRAMS := $(EVIDENCE_PROGRAM) $(EVIDENCE_NET_PROGRAM) $(EVIDENCE_WITHIN_PROGRAM) \
	$(EVIDENCE_CACHE_PROGRAM)
EVIDENCE_OBJS := $(patsubst %,$(BUILD)/evidence/bpf/%,\
	$(if $(HAVE_BPF),load.o symbols.o rings-map.o part.o net.o within.o cache.o image.o,none.o))
UPROBE_OBJS := $(patsubst %,$(BUILD)/inject/uprobe/%,$(if $(HAVE_BPF),uprobe.o place.o arm.o cost.o variable.o kernel.o image.o,none.o))
KERNEL_OBJS := $(BUILD)/kernel/$(if $(HAVE_BPF),btf,none).o
SB_LIBS += $(if $(HAVE_BPF),-lbpf)

DIRS := $(shell find src -type d) inject inject/arch/$(ARCH) elf sweep trace evidence kernel
SRCS := $(filter-out kernel/btf.c kernel/none.c,$(foreach d,$(DIRS),$(wildcard $(d)/*.c)))
ASMS := $(foreach d,$(DIRS),$(wildcard $(d)/*.S))
OBJS := $(SRCS:%.c=$(BUILD)/%.o) $(ASMS:%.S=$(BUILD)/%.o) $(UPROBE_OBJS) $(EVIDENCE_OBJS) $(KERNEL_OBJS)
LIBOBJS = $(filter-out $(BUILD)/src/cli/main.o,$(OBJS)) $(AGENT_IMAGE) $(DEVICE_IMAGE)

UNIT_SRCS := $(wildcard test/unit/test-*.c)
UNITS := $(UNIT_SRCS:test/unit/%.c=$(BUILD)/test/unit/%)

all: $(BUILD)/sbinject $(BUILD)/sbctl ## build sbinject and sbctl
	@:

help: ## list the targets
	@sed -n 's/^\([a-z_.-]*\):.*## /\1\t/p' Makefile */*.mk | sort | \
		awk -F '\t' '{ printf "  %-22s %s\n", $$1, $$2 }'
	@echo "  variables: PREFIX DESTDIR CC CFLAGS SAN=1 (sanitizers) FAULT=1 (fault points)"

include python/python.mk
include device/device.mk

# With fault points only the files that pass one differ: they stand before the ordinary library, whose
# objects of the same names are then left out by the linker. The ordinary build is made first.
ifdef FAULT
PLAIN := $(BUILD:%-fault=%)
FAULT_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(shell grep -lE '(inject/|")fault\.h"' $(SRCS)))

ifeq ($(PLAIN),$(BUILD))
$(error BUILD: the folder of a build with fault points ends with -fault, beside the ordinary one)
endif

$(PLAIN)/libsb.a: FORCE
	@+$(MAKE) --no-print-directory FAULT= BUILD=$(PLAIN) $(PLAIN)/libsb.a $(PLAIN)/sbctl

$(BUILD)/sbinject: $(BUILD)/src/cli/main.o $(FAULT_OBJS) $(PLAIN)/libsb.a
	$(CC) $(CFLAGS) $(SB_LDFLAGS) $(LDFLAGS) -o $@ $^ $(SB_LIBS)

$(BUILD)/sbctl: $(PLAIN)/libsb.a
	cp $(PLAIN)/sbctl $@
else
$(BUILD)/sbinject: $(BUILD)/src/cli/main.o $(BUILD)/libsb.a
	$(CC) $(CFLAGS) $(SB_LDFLAGS) $(LDFLAGS) -o $@ $^ $(SB_LIBS)
endif

CTL_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard ctl/*.c))

ifndef FAULT
$(BUILD)/sbctl: $(CTL_OBJS) $(BUILD)/libsb.a
	$(CC) $(CFLAGS) $(SB_LDFLAGS) $(LDFLAGS) -o $@ $^ $(SB_LIBS)
endif

$(BUILD)/libsb.a: $(LIBOBJS)
	@rm -f $@
	ar qcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(SB_CFLAGS) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<

$(UPROBE_PROGRAM) $(KERNEL_PROGRAM): inject/uprobe/uprobe-abi.h inject/uprobe/tree.bpf.h
$(KERNEL_PROGRAM): inject/uprobe/kernel-abi.h inject/uprobe/ioctl.bpf.h inject/uprobe/sched.bpf.h
$(EVIDENCE_PROGRAMS): evidence/bpf/evidence-abi.h evidence/bpf/rows.bpf.h evidence/bpf/call.bpf.h
$(EVIDENCE_WITHIN_PROGRAM): evidence/bpf/contention.h
BPF_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(ARCH)))
$(BUILD)/%.bpf.o: %.bpf.c
	@mkdir -p $(@D)
	clang -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Wno-unused-parameter \
		-D__TARGET_ARCH_$(BPF_ARCH) -I/usr/include/$(ARCH)-linux-gnu -c -o $@ $<
	@! command -v llvm-strip >/dev/null || llvm-strip -g $@

$(BUILD)/inject/uprobe/image.o: inject/uprobe/image.S $(UPROBE_PROGRAM) $(KERNEL_PROGRAM)
	@mkdir -p $(@D)
	$(CC) -DSB_UPROBE_FILE='"$(UPROBE_PROGRAM)"' -DSB_KERNEL_FILE='"$(KERNEL_PROGRAM)"' -c -o $@ $<

$(BUILD)/evidence/bpf/image.o: evidence/bpf/image.S $(EVIDENCE_PROGRAMS)
	@mkdir -p $(@D)
	$(CC) -DSB_EVIDENCE_FILE='"$(EVIDENCE_PROGRAM)"' \
		-DSB_EVIDENCE_NET_FILE='"$(EVIDENCE_NET_PROGRAM)"' \
		-DSB_EVIDENCE_WITHIN_FILE='"$(EVIDENCE_WITHIN_PROGRAM)"' \
		-DSB_EVIDENCE_CACHE_FILE='"$(EVIDENCE_CACHE_PROGRAM)"' -c -o $@ $<

# Code that is copied into targets as it is: nothing may be added to it, nor lie elsewhere. clang
# makes no calls of loops where it is told of no builtins, and does not know gcc's word for it.
NO_LOOP_CALLS := $(if $(findstring clang,$(CC)),-fno-builtin,-fno-tree-loop-distribute-patterns)
ENTRY_CFLAGS := -O2 -fPIC -ffreestanding -fno-stack-protector -fno-jump-tables -fno-sanitize=all \
	$(NO_LOOP_CALLS) -fno-asynchronous-unwind-tables -mgeneral-regs-only -fcf-protection=none \
	-U_FORTIFY_SOURCE -fno-lto

$(BUILD)/inject/entry.o: inject/entry.c
	@mkdir -p $(@D)
	$(CC) $(SB_CFLAGS) $(CFLAGS) $(CPPFLAGS) $(ENTRY_CFLAGS) -Iinject/arch/$(ARCH) -c -o $@ $<
	@if readelf -SW $@ | grep -q 'rela\?sb_entry'; then \
		echo "inject/entry.c: its code refers to something outside of it" >&2; \
		rm -f $@; exit 1; fi

# One function, which keeps its frame pointer: a recovery from a fault returns by it.
$(BUILD)/inject/pyframes.o: inject/pyframes.c
	@mkdir -p $(@D)
	$(CC) $(SB_CFLAGS) $(CFLAGS) $(CPPFLAGS) $(ENTRY_CFLAGS) -Os -fno-omit-frame-pointer -c -o $@ $<
	@if readelf -SW $@ | grep -q 'rela\?sb_frames' || \
		objdump -d -j sb_frames $@ | grep -q '\<call'; then \
		echo "inject/pyframes.c: its code refers to something outside of it" >&2; \
		rm -f $@; exit 1; fi

$(BUILD)/%.o: %.S
	@mkdir -p $(@D)
	$(CC) $(SB_CFLAGS) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<

$(BUILD)/test/unit/%: test/unit/%.c $(BUILD)/libsb.a
	@mkdir -p $(@D)
	$(CC) $(SB_CFLAGS) $(CFLAGS) $(SB_LDFLAGS) -o $@ $< $(BUILD)/libsb.a $(SB_LIBS) -lcmocka

$(BUILD)/test/unit/test-agent-memory: SB_CFLAGS += -Ipython/agent/arch/$(ARCH)

units: $(UNITS) ## build the unit tests

include test/test.mk

deps: ## install what is missing to build (root), or print the command
	@scripts/deps.sh build
	@scripts/deps.sh -t uprobe

deps-uprobe: ## install what the uprobe backend is built with: clang, libbpf
	@scripts/deps.sh uprobe

deps-emulator: ## bring an emulator and two kernels to test the kernel module in
	@scripts/deps.sh emulator
	@scripts/emulator.sh

# The module for the kernel that runs (KDIR=DIR: another one's headers); it is not part of `all`.
kmod: ## build the kernel module, inject/kmod/speed_bump.ko
	$(MAKE) -C inject/kmod modules

# What is installed by deps must be seen by the make that builds: hence the second make.
demo: ## install what is missing, build, slow a live process and show it
	@scripts/deps.sh build
	@+$(MAKE_ALL) all victims
	@scripts/demo.sh $(BUILD)

install: all ## install the programs, man pages, completions and presets (PREFIX, DESTDIR)
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/bin
	$(INSTALL) -m 755 $(BUILD)/sbinject $(DESTDIR)$(PREFIX)/bin/sbinject
	$(INSTALL) -m 755 $(BUILD)/sbctl $(DESTDIR)$(PREFIX)/bin/sbctl
	@set -e; for page in $(wildcard man/*.[1-8]); do \
		dir=$(DESTDIR)$(MANDIR)/man$${page##*.}; \
		$(INSTALL) -d $$dir; $(INSTALL) -m 644 $$page $$dir; \
		echo "$(INSTALL) -m 644 $$page $$dir"; done
	$(INSTALL) -d $(DESTDIR)$(COMPDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR)
	$(INSTALL) -m 644 completion/sbinject.bash $(DESTDIR)$(COMPDIR)/sbinject
	$(INSTALL) -m 644 completion/sbinject.bash $(DESTDIR)$(COMPDIR)/sbctl
	$(INSTALL) -m 644 completion/_sbinject $(DESTDIR)$(ZSHDIR)/_sbinject
	$(INSTALL) -m 644 $(wildcard completion/*.fish) $(DESTDIR)$(FISHDIR)
	$(INSTALL) -d $(DESTDIR)$(PRESETDIR)
	$(INSTALL) -m 644 $(wildcard share/sbinject/presets/*.*) $(DESTDIR)$(PRESETDIR)

uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(PREFIX)/bin/sbinject $(DESTDIR)$(PREFIX)/bin/sbctl
	rm -f $(foreach page,$(wildcard man/*.[1-8]),\
		$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(notdir $(page)))
	rm -f $(DESTDIR)$(COMPDIR)/sbinject $(DESTDIR)$(COMPDIR)/sbctl $(DESTDIR)$(ZSHDIR)/_sbinject
	rm -f $(foreach file,$(wildcard completion/*.fish),$(DESTDIR)$(FISHDIR)/$(notdir $(file)))
	rm -f $(foreach file,$(wildcard share/sbinject/presets/*.*),\
		$(DESTDIR)$(PRESETDIR)/$(notdir $(file)))
	rmdir $(DESTDIR)$(PRESETDIR) $(DESTDIR)$(PREFIX)/share/sbinject 2>/dev/null || true

compile_commands.json: FORCE ## for clangd and clang-tidy
	@scripts/compile-commands.sh $(CC) $(SB_CFLAGS) $(CFLAGS) $(CPPFLAGS) \
		-Iinject/arch/$(ARCH) -- $(SRCS) $(addprefix inject/uprobe/,uprobe.c place.c arm.c cost.c variable.c kernel.c) kernel/btf.c $(addprefix evidence/bpf/,load.c symbols.c rings-map.c part.c net.c within.c cache.c) \
		$(UNIT_SRCS) \
		>$@.new
	@mv $@.new $@

clean: ## remove every build
	rm -rf build build-san build-fault build-san-fault build-fuzz compile_commands.json

FORCE:

.PHONY: all help units deps deps-uprobe deps-emulator kmod demo install uninstall clean FORCE
-include $(OBJS:.o=.d) $(CTL_OBJS:.o=.d) $(UNITS:%=%.d)
