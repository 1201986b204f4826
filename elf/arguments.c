/* SPDX-License-Identifier: MIT */
/* Which registers hold the arguments of a C or C++ function, from its DWARF, through libdw. */
#include "dwarf-units.h"
#include "here.h"
#include "src/base/value.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>

static const char changed[] = "the compiler changed how its arguments are passed";

enum {
	REGISTERS = 6,
	PARAMETERS_MAX = 64,
	TYPE_DEPTH_MAX = 32, /* typedefs of typedefs; the file may be damaged */
	NAME_MAX_LEN = 30,   /* of a value, with a '_' behind it */
	TEXT_MAX = 512,
	BIG = 16, /* bytes; a larger object is passed and returned in memory */
};

/* System V's classes, as far as they take integer registers. */
enum place {
	PLACE_REGISTER,
	PLACE_ELSEWHERE, /* a vector register or the stack: takes no integer register */
	PLACE_UNKNOWN,	 /* an object of up to 16 bytes: as its members are */
};

struct argument_search {
	uint64_t vaddr;
	Dwarf_Die function; /* where found */
	bool found, c_family, cpp;
	unsigned int next; /* integer register, from 0 */
	char *text;	   /* TEXT_MAX bytes */
	size_t len;
	char why[128]; /* the first parameter that is left out; "" */
	struct budget_run run;
};

/* The type behind names and qualifiers; false: void, or damaged. */
static bool bare_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute mem;
	int depth = 0;

	if (!dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &mem), type))
		return false;
	for (;; depth++) {
		switch (dwarf_tag(type)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (depth > TYPE_DEPTH_MAX ||
			    !dwarf_formref_die(dwarf_attr(type, DW_AT_type, &mem), type))
				return false;
			break;
		default:
			return true;
		}
	}
}

static uint64_t number_of(Dwarf_Die *die, unsigned int name, uint64_t other)
{
	Dwarf_Attribute mem;
	Dwarf_Word value;

	return dwarf_formudata(dwarf_attr_integrate(die, name, &mem), &value) == 0 ? value : other;
}

static bool is_signed(uint64_t encoding)
{
	return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
}

/* "i32"; NULL: an integer of a size that no register has. */
static const char *integer_name(uint64_t size, bool with_sign)
{
	static const char *const names[2][4] = { { "u8", "u16", "u32", "u64" },
						 { "i8", "i16", "i32", "i64" } };

	for (unsigned int i = 0; i < 4; i++)
		if (size == 1u << i)
			return names[with_sign][i];
	return NULL;
}

static enum place base_place(Dwarf_Die *type, const char **name)
{
	uint64_t encoding = number_of(type, DW_AT_encoding, 0);

	if (encoding == DW_ATE_float || encoding == DW_ATE_complex_float ||
	    encoding == DW_ATE_decimal_float)
		return PLACE_ELSEWHERE;
	*name = encoding == DW_ATE_boolean ?
			"bool" :
			integer_name(number_of(type, DW_AT_byte_size, 0), is_signed(encoding));
	return *name ? PLACE_REGISTER : PLACE_UNKNOWN;
}

static enum place enum_place(Dwarf_Die *type, const char **name)
{
	bool with_sign = false;
	Dwarf_Die under;

	if (bare_type(type, &under))
		with_sign = is_signed(number_of(&under, DW_AT_encoding, 0));
	*name = integer_name(number_of(type, DW_AT_byte_size, 0), with_sign);
	return *name ? PLACE_REGISTER : PLACE_UNKNOWN;
}

/* An object that only a constructor may copy is passed as the address of a copy. */
static enum place object_place(const struct argument_search *s, Dwarf_Die *type, const char **name)
{
	uint64_t how = number_of(type, DW_AT_calling_convention, 0);

	if (how == DW_CC_pass_by_reference) {
		*name = "ptr";
		return PLACE_REGISTER;
	}
	if (number_of(type, DW_AT_byte_size, 0) > BIG && (!s->cpp || how == DW_CC_pass_by_value))
		return PLACE_ELSEWHERE;
	return PLACE_UNKNOWN;
}

static enum place place_of(const struct argument_search *s, Dwarf_Die *parameter, const char **name)
{
	Dwarf_Die type, of;

	if (!bare_type(parameter, &type))
		return PLACE_UNKNOWN;
	switch (dwarf_tag(&type)) {
	case DW_TAG_base_type:
		return base_place(&type, name);
	case DW_TAG_enumeration_type:
		return enum_place(&type, name);
	case DW_TAG_ptr_to_member_type: /* that of a function has two words */
		if (!bare_type(&type, &of) || dwarf_tag(&of) == DW_TAG_subroutine_type)
			return PLACE_UNKNOWN;
		*name = "ptr";
		return PLACE_REGISTER;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_unspecified_type: /* nullptr_t */
		*name = "ptr";
		return PLACE_REGISTER;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return object_place(s, &type, name);
	default:
		return PLACE_UNKNOWN;
	}
}

/*
 * A compiler may pass the arguments of a function that it sees all callers of in other ways. Where
 * the DWARF says in which register a parameter is as the function begins, that has to be this one.
 */
static bool is_there(Dwarf_Die *parameter, uint64_t vaddr, unsigned int reg)
{
	static const uint8_t number[REGISTERS] = { 5, 4, 1, 2, 8, 9 };
	Dwarf_Attribute mem;
	Dwarf_Attribute *at = dwarf_attr(parameter, DW_AT_location, &mem);
	Dwarf_Op *op;
	size_t n;

	if (!at || dwarf_getlocation_addr(at, vaddr, &op, &n, 1) != 1 || n != 1)
		return true;
	if (op->atom == DW_OP_regx)
		return op->number == number[reg];
	return op->atom < DW_OP_reg0 || op->atom > DW_OP_reg31 ||
	       op->atom - DW_OP_reg0 == number[reg];
}

/* Their own names where arg= takes them; "arg3" of those without. */
static void name_of(Dwarf_Die *parameter, unsigned int number, char name[NAME_MAX_LEN + 2])
{
	const char *own = dwarf_diename(parameter);

	if (!own || strlen(own) > NAME_MAX_LEN || !value_name_ok(own, strlen(own)))
		snprintf(name, NAME_MAX_LEN + 2, "arg%u", number);
	else
		snprintf(name, NAME_MAX_LEN + 2, "%s%s", own, value_name_taken(own) ? "_" : "");
}

static void leave_out(struct argument_search *s, unsigned int number, const char *name,
		      const char *why)
{
	if (!s->why[0])
		snprintf(s->why, sizeof(s->why), "argument %u (%s) %s", number, name, why);
}

/* One parameter; false: the places of those behind it are not known. */
static bool take(struct argument_search *s, Dwarf_Die *parameter, unsigned int number)
{
	char name[NAME_MAX_LEN + 2];
	const char *type = NULL;

	name_of(parameter, number, name);
	switch (place_of(s, parameter, &type)) {
	case PLACE_UNKNOWN:
		leave_out(s, number, name, "is an object passed by value");
		return false;
	case PLACE_ELSEWHERE:
		leave_out(s, number, name, "is in no integer register");
		return true;
	default:
		break;
	}
	if (s->next == REGISTERS) {
		leave_out(s, number, name, "is on the stack");
		return false;
	}
	if (!is_there(parameter, s->vaddr, s->next)) {
		leave_out(s, number, name, "was moved by the compiler");
		return false;
	}
	s->next++;
	s->len += (size_t)snprintf(s->text + s->len, TEXT_MAX - s->len, "%s%s:%u:%s",
				   s->len ? " " : "", name, s->next, type);
	return s->len < TEXT_MAX / 2;
}

/* An object that is returned in memory takes the first register for its address. */
static bool skip_returned(struct argument_search *s)
{
	uint64_t how;
	Dwarf_Die type;
	int tag;

	if (!bare_type(&s->function, &type))
		return true;
	tag = dwarf_tag(&type);
	if (tag != DW_TAG_structure_type && tag != DW_TAG_class_type && tag != DW_TAG_union_type)
		return true;
	how = number_of(&type, DW_AT_calling_convention, 0);
	if (how == DW_CC_pass_by_reference || number_of(&type, DW_AT_byte_size, 0) > BIG)
		s->next++;
	else if (s->cpp && how != DW_CC_pass_by_value)
		return false;
	return true;
}

static unsigned int parameters_of(Dwarf_Die *function, Dwarf_Die *all)
{
	unsigned int n = 0;
	Dwarf_Die die;

	if (dwarf_child(function, &die))
		return 0;
	do {
		if (dwarf_tag(&die) == DW_TAG_formal_parameter && n < PARAMETERS_MAX)
			all[n++] = die;
	} while (dwarf_siblingof(&die, &die) == 0);
	return n;
}

/* A copy of a function may lack parameters that its declaration has. */
static bool as_declared(Dwarf_Die *function, unsigned int n)
{
	static const unsigned int links[] = { DW_AT_abstract_origin, DW_AT_specification };
	Dwarf_Die all[PARAMETERS_MAX], from;
	Dwarf_Attribute mem;

	for (unsigned int i = 0; i < 2; i++)
		if (dwarf_formref_die(dwarf_attr(function, links[i], &mem), &from) &&
		    parameters_of(&from, all) != n)
			return false;
	return true;
}

static const char *describe(struct argument_search *s)
{
	Dwarf_Die all[PARAMETERS_MAX];
	unsigned int n = parameters_of(&s->function, all);

	if (!s->c_family)
		return "it is neither C nor C++, which pass arguments as arg= has them";
	if (number_of(&s->function, DW_AT_calling_convention, DW_CC_normal) != DW_CC_normal)
		return changed;
	if (!as_declared(&s->function, n))
		return "the compiler removed parameters of it";
	if (!skip_returned(s))
		return "it returns an object, perhaps by a hidden argument";
	for (unsigned int i = 0; i < n; i++) {
		const char *name = dwarf_diename(&all[i]);

		if (name && (!strcmp(name, "__in_chrg") || !strcmp(name, "__vtt_parm")))
			return "it is a constructor or destructor with hidden arguments";
	}
	for (unsigned int i = 0; i < n && take(s, &all[i], i + 1);)
		i++;
	if (!n)
		return "it has no arguments";
	return s->len ? NULL : s->why;
}

static void note_language(struct argument_search *s, Dwarf_Die *unit)
{
	static const uint16_t c[] = { DW_LANG_C89, DW_LANG_C, DW_LANG_C99, DW_LANG_C11,
				      DW_LANG_ObjC };
	static const uint16_t cpp[] = { DW_LANG_C_plus_plus,	DW_LANG_C_plus_plus_03,
					DW_LANG_C_plus_plus_11, DW_LANG_C_plus_plus_14,
					0x2b /* C++17 */,	0x2d /* C++20 */,
					DW_LANG_ObjC_plus_plus };
	uint64_t language = number_of(unit, DW_AT_language, 0);

	s->cpp = false;
	s->c_family = language == 0x2c /* C17 */;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++)
		s->c_family |= language == c[i];
	for (size_t i = 0; i < sizeof(cpp) / sizeof(*cpp); i++)
		s->cpp |= language == cpp[i];
	s->c_family |= s->cpp;
}

/* Functions are members of units, namespaces and classes. */
static void walk(struct argument_search *s, Dwarf_Die *parent, unsigned int depth)
{
	Dwarf_Die die;
	Dwarf_Addr at;

	if (depth > DWARF_DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		if (budget_over(&s->run))
			return;
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			s->found = dwarf_entrypc(&die, &at) == 0 && at == s->vaddr;
			if (s->found)
				s->function = die;
			break;
		case DW_TAG_namespace:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_module:
			walk(s, &die, depth + 1);
			break;
		default:
			break;
		}
	} while (!s->found && dwarf_siblingof(&die, &die) == 0);
}

/* The function's DIE is valid only while the units are searched. */
static bool search_unit(void *ctx, Dwarf_Die *unit)
{
	struct argument_search *s = ctx;
	const char *why;

	if (dwarf_haspc(unit, s->vaddr) == 0)
		return true;
	note_language(s, unit);
	walk(s, unit, 0);
	if (!s->found)
		return true;
	why = describe(s);
	if (why)
		s->len = 0;
	if (why && why != s->why)
		snprintf(s->why, sizeof(s->why), "%s", why);
	return false;
}

/* A clone has arguments of its own under the name of the function that it was made of. */
static bool is_clone(const char *name)
{
	return strstr(name, ".isra.") || strstr(name, ".constprop.") || strstr(name, ".part.");
}

static int unknown(const char *why, bool found, struct sb_err *err)
{
	err_set(err, SB_ENOSYMBOL, "%s", why);
	err_hint(err, "%sname the arguments with arg=NAME:N",
		 found ? "" : "build it with -g, install its debug symbols, or ");
	return -SB_ENOSYMBOL;
}

int here_arguments(struct image *img, uint64_t vaddr, const char *name, struct symbol_list *out,
		   struct sb_err *err)
{
	char text[TEXT_MAX] = "";
	struct argument_search s = { .vaddr = vaddr, .text = text };
	bool has_dwarf;

	*out = (struct symbol_list){ 0 };
	if (is_clone(name))
		return unknown(changed, true, err);
	budget_begin(&s.run, &img->budget);
	has_dwarf = dwarf_units(img, &s.run, search_unit, &s);
	budget_end(&s.run);
	view_forget(img->view.base, img->view.base + img->view.size);
	if (!s.len)
		return unknown(s.found	 ? s.why :
			       has_dwarf ? "its debug information does not have it" :
					   "its file has no debug information",
			       s.found, err);
	out->sym = calloc(1, sizeof(*out->sym));
	if (!out->sym)
		return err_set(err, SB_ENOMEM, "no memory for its arguments");
	s.len += (size_t)snprintf(text + s.len, sizeof(text) - s.len, "%s%s", s.why[0] ? "\n" : "",
				  s.why);
	out->sym[0] = (struct symbol){ .vaddr = vaddr, .name = strdup(text) };
	out->count = out->sym[0].name != NULL;
	out->img = image_ref(img);
	return 0;
}
