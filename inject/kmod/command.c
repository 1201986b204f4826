/* SPDX-License-Identifier: GPL-2.0 */
/* Parses and runs what is written to the files. */
#include <linux/ctype.h>
#include <linux/file.h>
#include <linux/kernel.h>
#include <linux/namei.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "speed_bump.h"

/* Splits PATH:SYMBOL; cuts text. At the last colon: symbols have none, paths may. */
static int split(char *text, char **path, char **symbol)
{
	char *colon = strrchr(text, ':');

	if (!colon || colon == text || !colon[1] || text[0] != '/')
		return -EINVAL;
	*colon = '\0';
	*path = text;
	*symbol = colon + 1;
	if (strlen(*path) > SB_MAX_PATH || strlen(*symbol) > SB_MAX_SYMBOL)
		return -ENAMETOOLONG;
	return 0;
}

int sb_parse_delay(const char *text, u64 *ns)
{
	/* Longer than any u64 is out of range, not malformed. */
	int ret = kstrtou64(text, 10, ns);

	if (ret == -ERANGE || (!ret && *ns > SB_MAX_DELAY_NS))
		return -ERANGE;
	return ret || !isdigit(text[0]) ? -EINVAL : 0;
}

static struct sb_target *find(const char *name)
{
	struct sb_target *t;

	list_for_each_entry(t, &sb_targets, list) if (!strcmp(t->name, name)) return t;
	return NULL;
}

/* Only an ordinary file is even opened: open() of a FIFO waits for a writer. */
static int resolve(struct sb_target *t, const char *path, const char *symbol)
{
	struct file *file;
	int ret = kern_path(path, LOOKUP_FOLLOW, &t->path);

	if (ret)
		return ret == -ENOMEM ? -ENOMEM : -ENOENT;
	if (!d_is_reg(t->path.dentry))
		return -ENOEXEC;
	file = dentry_open(&t->path, O_RDONLY | O_LARGEFILE, current_cred());
	if (IS_ERR(file))
		return PTR_ERR(file) == -ENOMEM ? -ENOMEM : -ENOENT;
	ret = sb_symbol_offset(file, symbol, &t->offset);
	fput(file);
	return ret;
}

void sb_target_put(struct sb_target *t)
{
	if (!refcount_dec_and_test(&t->refs))
		return;
	kfree(t->name);
	kfree(t);
}

static void target_free(struct sb_target *t)
{
	if (t->path.dentry)
		path_put(&t->path);
	sb_target_put(t);
}

static void target_remove(struct sb_target *t)
{
	WRITE_ONCE(t->gone, true);
	sb_unprobe(t);
	if (t->pid)
		sb_tree_remove(t->bit);
	list_del(&t->list);
	target_free(t);
}

/* A bit that no target uses; SB_MAX_TARGETS: there is none. */
static unsigned int free_bit(void)
{
	const struct sb_target *t;
	u64 used = 0;

	list_for_each_entry(t, &sb_targets, list) used |= 1ull << t->bit;
	return ~used ? __builtin_ctzll(~used) : SB_MAX_TARGETS;
}

static int parse_words(char *words, struct sb_target *t)
{
	char *word;
	bool delay = false;
	int ret = 0;

	while (!ret && (word = strsep(&words, " \t"))) {
		if (!*word)
			continue;
		if (!strncmp(word, "pid=", 4)) {
			ret = kstrtoint(word + 4, 10, &t->pid) || t->pid <= 0 ? -EINVAL : 0;
		} else {
			ret = delay ? -EINVAL : sb_parse_delay(word, &t->delay_ns);
			delay = true;
		}
	}
	return ret;
}

static int put_in(struct sb_target *t)
{
	int ret = 0;

	list_add_tail(&t->list, &sb_targets);
	if (t->pid)
		ret = sb_tree_add(t->pid, t->bit);
	if (!ret && sb_enabled)
		ret = sb_probe(t);
	if (ret)
		target_remove(t);
	return ret;
}

/* Under sb_lock: is there space for it? */
static int find_place(struct sb_target *t)
{
	if (find(t->name))
		return -EEXIST;
	t->bit = free_bit();
	return t->bit == SB_MAX_TARGETS ? -ENOSPC : 0;
}

/*
 * A file may belong to a file system in user space, which may delay this call: so it is opened
 * without the lock, and the checks from before are repeated afterwards.
 */
static int resolve_and_put_in(struct sb_target *t, const char *path, const char *symbol)
{
	int ret;

	mutex_lock(&sb_lock);
	ret = find_place(t);
	mutex_unlock(&sb_lock);
	if (!ret)
		ret = resolve(t, path, symbol);
	if (ret) {
		target_free(t);
		return ret;
	}
	mutex_lock(&sb_lock);
	ret = find_place(t);
	if (ret)
		target_free(t);
	else
		ret = put_in(t);
	mutex_unlock(&sb_lock);
	return ret;
}

static int add(char *name, char *words)
{
	struct sb_target *t = kzalloc(sizeof(*t), GFP_KERNEL);
	char *path, *symbol;
	int ret = -ENOMEM;

	if (!t)
		return -ENOMEM;
	refcount_set(&t->refs, 1);
	t->delay_ns = READ_ONCE(sb_default_delay_ns);
	t->name = kstrdup(name, GFP_KERNEL);
	if (t->name)
		ret = parse_words(words, t);
	if (!ret)
		ret = split(name, &path, &symbol);
	if (!ret)
		return resolve_and_put_in(t, path, symbol);
	target_free(t);
	return ret;
}

static int named(char *name, char *words, struct sb_target **out)
{
	char *copy = kstrdup(name, GFP_KERNEL), *path, *symbol;
	int ret = copy ? split(copy, &path, &symbol) : -ENOMEM;

	kfree(copy);
	if (ret)
		return ret;
	*out = find(name);
	return *out ? 0 : -ENOENT;
}

static int remove(char *name, char *words)
{
	struct sb_target *t;
	int ret;

	if (words && *skip_spaces(words))
		return -EINVAL;
	if (!strcmp(name, "*")) {
		sb_clear();
		return 0;
	}
	ret = named(name, words, &t);
	if (!ret)
		target_remove(t);
	return ret;
}

static int update(char *name, char *words)
{
	struct sb_target *t;
	u64 ns;
	int ret = words ? sb_parse_delay(strim(words), &ns) : -EINVAL;

	if (!ret)
		ret = named(name, words, &t);
	if (!ret)
		WRITE_ONCE(t->delay_ns, ns);
	return ret;
}

int sb_command(char *text)
{
	char sign = *text++, *words = text, *name;

	int ret = -EINVAL;

	name = sign ? strsep(&words, " \t") : NULL;
	if (!name || !*name)
		return -EINVAL;
	if (sign == '+')
		return add(name, words);
	mutex_lock(&sb_lock);
	if (sign == '-')
		ret = remove(name, words);
	else if (sign == '=')
		ret = update(name, words);
	mutex_unlock(&sb_lock);
	return ret;
}

void sb_clear(void)
{
	struct sb_target *t, *next;

	/* Ends all spins at once, before it waits for the first. */
	list_for_each_entry(t, &sb_targets, list) WRITE_ONCE(t->gone, true);
	list_for_each_entry_safe(t, next, &sb_targets, list) target_remove(t);
}

int sb_enable(bool on)
{
	struct sb_target *t;
	int ret = 0;

	WRITE_ONCE(sb_enabled, on);
	list_for_each_entry(t, &sb_targets, list)
	{
		if (!on)
			sb_unprobe(t);
		else if (!ret)
			ret = sb_probe(t);
	}
	if (ret)
		sb_enable(false);
	return ret;
}
