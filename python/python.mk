# SPDX-License-Identifier: MIT
# The agent: a shared object to load into interpreters, embedded in the sbinject binary.
# PYTHON_INCLUDE=DIR names the folder of the Python.h (3.10 or later) to build it with.

# It uses only memory and strings of the C library, unversioned, and names no library: it loads
# beside an older libc than the one here, and beside one that is not glibc.
AGENT_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -fPIC -fvisibility=hidden \
	-fno-strict-aliasing -fno-stack-protector -foptimize-sibling-calls -U_FORTIFY_SOURCE -MMD -MP -iquote .
AGENT_LDFLAGS = -shared -nostdlib -Wl,-z,now,-z,relro,-z,noexecstack,--build-id=sha1

AGENT_SRCS := $(wildcard python/agent/*.c)
AGENT_OBJS := $(AGENT_SRCS:%.c=$(BUILD)/%.o)
AGENT := $(BUILD)/python/agent.so
AGENT_IMAGE := $(BUILD)/python/agent/agent-image.o

PYTHON_INCLUDE = $(eval PYTHON_INCLUDE := $$(shell scripts/find-python.sh))$(PYTHON_INCLUDE)

# Rebuild where it was built without Python once, and Python is present now.
$(shell [ -s $(AGENT).stripped ] || rm -f $(AGENT).stripped)

$(BUILD)/python/agent/%.o: python/agent/%.c
	@mkdir -p $(@D)
	$(CC) $(AGENT_CFLAGS) -Ipython/agent/arch/$(ARCH) -isystem $(PYTHON_INCLUDE) -c -o $@ $<

$(AGENT): $(AGENT_OBJS)
	$(CC) $(AGENT_LDFLAGS) -o $@ $^

$(AGENT).stripped: $(AGENT_SRCS) $(wildcard python/agent/*.h python/agent/arch/*/*.h inject/page-abi.h inject/pyframes.h)
	@mkdir -p $(@D)
	@if [ -n "$(PYTHON_INCLUDE)" ]; then $(MAKE) --no-print-directory $(AGENT) && \
		$(OBJCOPY) --strip-unneeded $(AGENT) $@; \
	else echo "no Python.h of 3.10 or later here (PYTHON_INCLUDE=DIR names one):" \
		"sbinject is built without Python targets"; : >$@; fi

$(AGENT_IMAGE): python/agent/agent-image.S $(AGENT).stripped
	@mkdir -p $(@D)
	$(CC) -DSB_AGENT_FILE='"$(AGENT).stripped"' -c -o $@ $<

agent: $(AGENT_IMAGE) ## build what is put into Python interpreters
	@:

.PHONY: agent
-include $(AGENT_OBJS:.o=.d)
