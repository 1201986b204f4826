# SPDX-License-Identifier: MIT
# sbinject. `make help` lists what can be made.

VERSION := 0.1.0
ARCH    ?= $(shell uname -m)
BUILD   ?= build$(if $(SAN),-san)$(if $(FAULT),-fault)
PREFIX  ?= /usr/local
DESTDIR ?=

CC      ?= cc
PKGS    := libelf libdw capstone jansson
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wvla
CFLAGS  ?= -O2 -g
SB_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DSB_VERSION='"$(VERSION)"' $(WARN) -fno-strict-aliasing \
	-MMD -MP $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
SB_LIBS = $(shell pkg-config --libs $(PKGS) 2>/dev/null) -liberty -lpthread -lm

ifdef SAN
SB_CFLAGS += -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
SB_LDFLAGS += -fsanitize=address,undefined
endif
ifdef FAULT
SB_CFLAGS += -DSB_FAULT_POINTS
endif

DIRS := src inject inject/arch/$(ARCH) elf
SRCS := $(foreach d,$(DIRS),$(wildcard $(d)/*.c))
ASMS := $(foreach d,$(DIRS),$(wildcard $(d)/*.S))
OBJS := $(SRCS:%.c=$(BUILD)/%.o) $(ASMS:%.S=$(BUILD)/%.o)
LIBOBJS := $(filter-out $(BUILD)/src/main.o,$(OBJS))

UNIT_SRCS := $(wildcard test/unit/test-*.c)
UNITS := $(UNIT_SRCS:test/unit/%.c=$(BUILD)/test/unit/%)

all: $(BUILD)/sbinject ## build the sbinject binary

$(BUILD)/sbinject: $(BUILD)/src/main.o $(BUILD)/libsb.a
	$(CC) $(CFLAGS) $(SB_LDFLAGS) $(LDFLAGS) -o $@ $^ $(SB_LIBS)

$(BUILD)/libsb.a: $(LIBOBJS)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(SB_CFLAGS) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<

$(BUILD)/%.o: %.S
	@mkdir -p $(@D)
	$(CC) $(SB_CFLAGS) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<

$(BUILD)/test/unit/%: test/unit/%.c $(BUILD)/libsb.a
	@mkdir -p $(@D)
	$(CC) $(SB_CFLAGS) $(CFLAGS) $(SB_LDFLAGS) -o $@ $< $(BUILD)/libsb.a $(SB_LIBS) -lcmocka

units: $(UNITS) ## build the unit tests

.PHONY: all units
-include $(OBJS:.o=.d) $(UNITS:%=%.d)
