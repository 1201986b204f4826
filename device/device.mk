# SPDX-License-Identifier: MIT
# The device agent: a shared object to load into processes that use CUDA, embedded in the sbinject
# binary. Built as the agent for Python is, and never unloaded: CUPTI keeps its callbacks.
DEVICE_SRCS := $(wildcard device/agent/*.c)
DEVICE_OBJS := $(DEVICE_SRCS:%.c=$(BUILD)/%.o)
DEVICE := $(BUILD)/device/agent.so
DEVICE_IMAGE := $(BUILD)/device/agent/image.o

$(BUILD)/device/agent/%.o: device/agent/%.c
	@mkdir -p $(@D)
	$(CC) $(AGENT_CFLAGS) -c -o $@ $<

$(DEVICE): $(DEVICE_OBJS)
	$(CC) $(AGENT_LDFLAGS) -Wl,-z,nodelete,-e,sb_agent -o $@ $^

$(DEVICE).stripped: $(DEVICE)
	$(OBJCOPY) --strip-unneeded $< $@

$(DEVICE_IMAGE): device/agent/image.S $(DEVICE).stripped
	@mkdir -p $(@D)
	$(CC) -DSB_DEVICE_FILE='"$(DEVICE).stripped"' -c -o $@ $<

-include $(DEVICE_OBJS:.o=.d)
