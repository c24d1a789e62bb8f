/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the names of the kernel's drop reasons from its BTF. */
#include "tap/drops_names.h"

#include <bpf/btf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record/packet.h"

#define PREFIX    "SKB_DROP_REASON_"
#define SUBSYSTEM "SKB_DROP_REASON_SUBSYS_"
#define CONSUMED  "SKB_CONSUMED"

/* Number of the tracepoint's arguments in BTF, with the context. */
#define LEAST     4 /* context, buffer, place, reason */
#define RX_SOCK   5

static uint16_t reason_of(const char *name)
{
	for (unsigned int v = 0; v < PL_DROP_REASONS; v++) {
		const char *word = pl_form_word(PL_FORM_DROP_REASON, v);

		if (word != NULL && strcmp(word, name) == 0)
			return (uint16_t)v;
	}
	return PL_DROP_OTHER;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Returns the value of the enumeration's i-th member, and its name. */
static uint32_t member(
	const struct btf *btf, const struct btf_type *t, unsigned int i, const char **ret_name)
{
	const struct btf_enum *e = &btf_enum(t)[i];

	*ret_name = btf__name_by_offset(btf, e->name_off);
	if (*ret_name == NULL)
		*ret_name = "";
	return (uint32_t)e->val;
}

static const struct btf_type *find_enum(const struct btf *btf, const char *name)
{
	const int id = btf__find_by_name_kind(btf, name, BTF_KIND_ENUM);

	return id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);
}

static void read_core(
	struct pl_drops_names *ret, const struct btf *btf, const struct btf_type *reasons)
{
	for (unsigned int i = 0; i < btf_vlen(reasons); i++) {
		const char *name;
		const uint32_t number = member(btf, reasons, i, &name);

		if (strcmp(name, CONSUMED) == 0)
			ret->consumed = number;
		if (number >= PL_DROPS_CORE || !begins(name, PREFIX) ||
			strcmp(name, PREFIX "MAX") == 0)
			continue;
		name += strlen(PREFIX);
		snprintf(ret->core[number], sizeof(ret->core[number]), "%s", name);
		ret->reason[number] = reason_of(name);
	}
}

static void read_subsystems(struct pl_drops_names *ret, const struct btf *btf)
{
	const struct btf_type *list = find_enum(btf, "skb_drop_reason_subsys");

	for (unsigned int i = 0; list != NULL && i < btf_vlen(list); i++) {
		const char *name;
		const uint32_t number = member(btf, list, i, &name);
		char *to;

		if (number < 1 || number > PL_DROPS_SUBSYSTEMS || !begins(name, SUBSYSTEM) ||
			strcmp(name, SUBSYSTEM "NUM") == 0)
			continue;
		name += strlen(SUBSYSTEM);
		ret->subsystem_reason[number - 1] =
			begins(name, "MAC80211") ? PL_DROP_MAC80211 : reason_of(name);
		to = ret->subsystem[number - 1];
		snprintf(to, sizeof(ret->subsystem[0]), "%s", name);
		for (; *to != '\0'; to++)
			*to = (char)tolower((unsigned char)*to);
	}
}

/* Returns the number of the tracepoint's arguments; 0: there is no such tracepoint. */
static unsigned int count_arguments(const struct btf *btf)
{
	const int id = btf__find_by_name_kind(btf, "btf_trace_kfree_skb", BTF_KIND_TYPEDEF);
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);

	t = t == NULL ? NULL : btf__type_by_id(btf, t->type);
	t = t == NULL || !btf_is_ptr(t) ? NULL : btf__type_by_id(btf, t->type);
	return t == NULL || !btf_is_func_proto(t) ? 0 : btf_vlen(t);
}

static int read_all(
	struct pl_drops_names *ret, const struct btf *btf, const char *what, struct pl_diag *diag)
{
	const struct btf_type *reasons = find_enum(btf, "skb_drop_reason");
	const unsigned int arguments = count_arguments(btf);

	if (reasons == NULL || arguments < LEAST) {
		pl_diag_set(diag,
			"%s: this kernel does not tell why it drops packets; that needs Linux 6.1",
			what);
		return -ENOTSUP;
	}
	ret->has_rx_sock = arguments >= RX_SOCK;
	read_core(ret, btf, reasons);
	read_subsystems(ret, btf);
	return 0;
}

int pl_drops_names_read(struct pl_drops_names *ret, const char *what, struct pl_diag *diag)
{
	struct btf *btf = btf__parse("/sys/kernel/btf/vmlinux", NULL);
	int r;

	memset(ret, 0, sizeof(*ret));
	if (btf == NULL) {
		pl_diag_set(diag,
			"%s: needs a kernel with BTF, and /sys/kernel/btf/vmlinux cannot be read (%s): "
			"its configuration is to have CONFIG_DEBUG_INFO_BTF",
			what, strerror(errno));
		return -ENOTSUP;
	}
	r = read_all(ret, btf, what, diag);
	btf__free(btf);
	return r;
}

uint16_t pl_drops_names_reason(const struct pl_drops_names *names, uint32_t kernel_reason)
{
	const uint32_t subsystem = kernel_reason >> 16;

	if (subsystem == 0)
		return kernel_reason < PL_DROPS_CORE ? names->reason[kernel_reason] : PL_DROP_OTHER;
	return subsystem <= PL_DROPS_SUBSYSTEMS ? names->subsystem_reason[subsystem - 1]
						: PL_DROP_OTHER;
}
