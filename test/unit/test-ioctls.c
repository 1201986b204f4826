/* SPDX-License-Identifier: MIT */
/* Requests to devices: their names, and calls of them as those of functions with these names. The
 * same of interrupts and of threads without a processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "src/session/uprobe/requests.h"
#include "src/session/uprobe/switches.h"
#include "src/spec/ioctls.h"

static const char text[] = "# a comment\n"
			   "nvidia*      F  0x2a  NV_ESC_RM_CONTROL # another\n"
			   "nvidia*\tF\t0x2b\tNV_ESC_RM_ALLOC\r\n"
			   "nvidia*      F  201   NV_ESC_REGISTER_FD\n"
			   "nvidia-uvm*  -  37    UVM_REGISTER_GPU\n"
			   "nvidia-uvm*  -  37    of_two_lines_the_first_has_it\n"
			   "nvidia-uvm*  -  0x30000001  UVM_INITIALIZE\n"
			   "\n"
			   "nvidia* F\n"
			   "nvidia* F x NAME\n";

static const char details[] = "# a comment\n"
			      "control  0x2080110  NV_A\n"
			      "control\t20\tNV_B # another\r\n"
			      "class  0xc86f  HOPPER\n"
			      "class  0xc86f  of_two_lines_the_first_has_it\n"
			      "clas  0xc870  NOT\n"
			      "class\n";

static void write_file(const char *dir, const char *name, const char *content)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sbinject/presets/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		abort();
	fputs(content, f);
	fclose(f);
}

/* The user's own directory. */
static int make_file(void **state)
{
	char dir[] = "/tmp/sbinject-ioctls.XXXXXX", path[128];

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	setenv("XDG_CONFIG_HOME", dir, 1);
	snprintf(path, sizeof(path), "mkdir -p %s/sbinject/presets", dir);
	if (system(path))
		return -1;
	write_file(dir, "nvidia.ioctls", text);
	write_file(dir, "nvidia.rm", details);
	ioctls_load();
	snprintf(path, sizeof(path), "rm -r %s", dir);
	return system(path);
}

static void test_names(void **state)
{
	static const struct {
		const char *device;
		uint32_t cmd, number;
		const char *name;
	} rows[] = {
		{ "nvidiactl", 0xc020462a, 0x2a, "NV_ESC_RM_CONTROL" },
		{ "nvidia0", 0xc030462b, 0x2b, "NV_ESC_RM_ALLOC" },
		{ "nvidiactl", 0xc01046d3, 0x2a, "NV_ESC_RM_CONTROL" },
		{ "nvidiactl", 0xc00446c9, 201, "NV_ESC_REGISTER_FD" },
		{ "nvidia-uvm", 37, 37, "UVM_REGISTER_GPU" },
		{ "nvidia-uvm", 0x30000001, 0x30000001, "UVM_INITIALIZE" },
		{ "nvidiactl", 37, 37, NULL },
		{ "nvidia-uvm", 8, 8, NULL },
		{ "nvidiactl", 0xc020582a, 0x2a, NULL },
		{ "kvm", 0xc020462a, 0x2a, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *name = ioctls_name(rows[i].device, rows[i].cmd, rows[i].number);

		if (rows[i].name)
			assert_string_equal(name ? name : "-", rows[i].name);
		else
			assert_null(name);
	}
}

static void test_details(void **state)
{
	(void)state;
	assert_string_equal(ioctls_detail_name("NV_ESC_RM_CONTROL", 0x2080110), "NV_A");
	assert_string_equal(ioctls_detail_name("NV_ESC_RM_CONTROL", 0x20), "NV_B");
	assert_string_equal(ioctls_detail_name("NV_ESC_RM_ALLOC", 0xc86f), "HOPPER");
	assert_null(ioctls_detail_name("NV_ESC_RM_CONTROL", 0xc86f));
	assert_null(ioctls_detail_name("NV_ESC_RM_ALLOC", 0xc870));
	assert_null(ioctls_detail_name("NV_ESC_RM_FREE", 0xc86f));
}

static struct kernel_span span_of(const char *device, uint32_t cmd, uint32_t number)
{
	struct kernel_span span = { .value = { [KERNEL_IOCTL_CMD] = cmd,
					       [KERNEL_IOCTL_NUMBER] = number,
					       [KERNEL_IOCTL_DETAIL] = KERNEL_UNKNOWN,
					       [KERNEL_IOCTL_STATUS] = 5,
					       [KERNEL_IOCTL_RESULT] = (uint64_t)-25 } };

	memcpy(&span.value[KERNEL_IOCTL_DEVICE], device, strlen(device));
	return span;
}

static uint32_t take(struct requests *r, const char *device, uint32_t cmd, struct trace_bytes *b)
{
	struct kernel_span span = span_of(device, cmd, cmd & 0xff);
	struct trace_valued v = { 0 };
	uint32_t id = requests_take(r, &span, &v, b);

	assert_int_equal(v.unknown, 1u << 2 | 1u << 5);
	assert_int_equal(v.value[1], cmd);
	assert_int_equal(v.value[3], 5);
	assert_int_equal((int64_t)v.value[4], -25);
	return id;
}

static void test_one_name_is_one_function(void **state)
{
	struct trace_bytes b = { 0 };
	struct requests r = { 0 };
	uint32_t control, other;

	(void)state;
	control = take(&r, "nvidiactl", 0xc020462a, &b);
	assert_int_equal(take(&r, "nvidia0", 0xc020462a, &b), control);
	assert_int_equal(take(&r, "nvidia0", 0xc028462a, &b), control);
	other = take(&r, "nvidia0", 0xc020462b, &b);
	assert_int_not_equal(other, control);
	assert_int_equal(take(&r, "nvidia0", 0xc020462b, &b), other);
	assert_int_equal(r.n_texts, 2);
	for (uint32_t i = 0; i < 2 * REQUESTS_MOST; i++)
		take(&r, "nvidia0", 0x10000 + i, &b);
	assert_int_equal(r.n, REQUESTS_MOST);
	assert_int_equal(take(&r, "nvidia0", 0x5000000, &b), REQUESTS_FROM + REQUESTS_MOST);
	assert_int_equal(take(&r, "nvidiactl", 0xc020462a, &b), control);
	requests_free(&r);
	free(b.data);
}

static void test_what_is_asked_for_has_a_name(void **state)
{
	struct kernel_span span = span_of("nvidiactl", 0xc030462b, 0x2b);
	struct trace_bytes b = { 0 };
	struct requests r = { 0 };
	struct trace_valued v = { 0 };

	(void)state;
	span.value[KERNEL_IOCTL_DETAIL] = 0xc86f;
	requests_take(&r, &span, &v, &b);
	assert_int_equal(v.unknown, 0);
	assert_int_equal(v.value[2], 0xc86f);
	assert_string_equal(r.text[v.value[5] - 1], "HOPPER");
	assert_string_equal(r.text[v.value[0] - 1], "nvidiactl");
	span.value[KERNEL_IOCTL_DETAIL] = 0xc870;
	v = (struct trace_valued){ 0 };
	requests_take(&r, &span, &v, &b);
	assert_int_equal(v.unknown, 1u << 5);
	requests_free(&r);
	free(b.data);
}

static void test_devices_without_room_are_unknown(void **state)
{
	struct trace_bytes b = { 0 };
	struct requests r = { 0 };
	struct trace_valued v;
	char name[KERNEL_DEVICE];

	(void)state;
	for (int i = 0; i <= REQUEST_TEXTS_MOST; i++) {
		struct kernel_span span;

		snprintf(name, sizeof(name), "nvidia%d", i);
		span = span_of(name, 1, 1);
		v = (struct trace_valued){ 0 };
		requests_take(&r, &span, &v, &b);
		assert_int_equal(v.unknown & 1, i == REQUEST_TEXTS_MOST);
	}
	requests_free(&r);
	free(b.data);
}

static uint32_t interrupt(struct switches *s, const char *name, uint32_t cpu, struct trace_bytes *b)
{
	struct kernel_span span = { .value = { [KERNEL_INTERRUPT_NUMBER] = 36,
					       [KERNEL_INTERRUPT_CPU] = cpu,
					       [KERNEL_INTERRUPT_RESULT] = 2 } };
	struct trace_valued v = { 0 };
	char track[16], expected[16];
	uint32_t id;

	strncpy((char *)&span.value[KERNEL_INTERRUPT_NAME], name, KERNEL_DEVICE);
	id = switches_interrupt(s, &span, &v, track, b);
	snprintf(expected, sizeof(expected), "CPU %u", cpu);
	assert_string_equal(track, expected);
	assert_int_equal(v.value[0], 36);
	assert_int_equal(v.value[1], cpu);
	assert_int_equal(v.value[2], 2);
	return id;
}

static void test_interrupts_and_switches(void **state)
{
	struct kernel_span span = { .value = { [KERNEL_OFFCPU_REASON] = KERNEL_OFFCPU_SLEEPS } };
	struct trace_bytes b = { 0 };
	struct switches s = { 0 };
	uint32_t first, second;
	char name[32];
	size_t len;

	(void)state;
	first = interrupt(&s, "nvidia", 0, &b);
	assert_int_equal(interrupt(&s, "nvidia", 4095, &b), first);
	second = interrupt(&s, "a name of sixteen", 1, &b); /* cut, and without an end */
	assert_int_not_equal(second, first);
	for (int i = 0; i < 2 * HANDLERS_MOST; i++) {
		snprintf(name, sizeof(name), "other%d", i);
		second = interrupt(&s, name, 0, &b);
	}
	assert_int_equal(s.n, HANDLERS_MOST);
	assert_int_equal(interrupt(&s, "one more", 0, &b), second);
	assert_int_equal(interrupt(&s, "nvidia", 0, &b), first);
	first = switches_offcpu(&s, &span, &b);
	len = b.len;
	assert_int_equal(switches_offcpu(&s, &span, &b), first);
	assert_int_equal(b.len, len);
	span.value[KERNEL_OFFCPU_REASON] = KERNEL_OFFCPU_RUNNABLE;
	assert_int_not_equal(switches_offcpu(&s, &span, &b), first);
	switches_free(&s);
	free(b.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_details),
		cmocka_unit_test(test_one_name_is_one_function),
		cmocka_unit_test(test_what_is_asked_for_has_a_name),
		cmocka_unit_test(test_devices_without_room_are_unknown),
		cmocka_unit_test(test_interrupts_and_switches),
	};

	return cmocka_run_group_tests(tests, make_file, NULL);
}
