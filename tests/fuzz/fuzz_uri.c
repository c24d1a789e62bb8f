/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * URIs of ports: the first line names one. Whatever it is, it names at least one socket or says
 * what is wrong; and rules that were taken become a program for the kernel that only jumps forward,
 * within itself, and ends. The rest of the input are rules as they may be set by other ways.
 */
#include <errno.h>
#include <linux/filter.h>

#include "fuzz.h"
#include "netio/iface.h"
#include "netio/port.h"

static void check_program(const struct pl_filter_rules *rules)
{
	static struct sock_filter code[PL_IFACE_CBPF_MAX];
	int n = pl_iface_cbpf(rules, code, PL_IFACE_CBPF_MAX);

	must(n == -E2BIG || (n > 0 && n <= PL_IFACE_CBPF_MAX));
	for (int i = 0; i < n; i++) {
		const struct sock_filter *f = &code[i];

		if (BPF_CLASS(f->code) != BPF_JMP)
			continue;
		if (BPF_OP(f->code) == BPF_JA)
			must(f->k < (uint32_t)(n - i - 1));
		else
			must(i + 1 + f->jt < n && i + 1 + f->jf < n);
	}
	must(n < 0 || BPF_CLASS(code[n - 1].code) == BPF_RET);
}

static void check_uri(const char *text)
{
	static const char *const keys[] = { PL_IFACE_KEYS, "queues", "mode", "copy", "fanout",
		NULL };
	static struct pl_filter_rules rules;
	static struct pl_uri parts;
	struct pl_diag diag = { .text = "" };
	uint32_t ring = 64, list[16];
	int n = pl_port_uri_sockets(text, &diag);

	must(n >= 1 || (n == -EINVAL && diag.text[0] != '\0'));
	if (pl_uri_split(&parts, text, keys, NULL) < 0)
		return;
	if (pl_iface_rules(&parts, &rules, NULL) == 0) {
		must(rules.naddrs <= PL_FILTER_ADDRS_MAX);
		check_program(&rules);
	}
	if (pl_iface_ring(&parts, &ring, NULL) == 0)
		must(ring >= 64 && (ring & (ring - 1)) == 0);
	if (pl_uri_get(&parts, "queues") != NULL) {
		n = pl_iface_numbers("queues", pl_uri_get(&parts, "queues"), 100, list, 16, NULL);
		for (int i = 0; i < n; i++)
			must(list[i] <= 100);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t line = end != NULL ? (size_t)(end - data) : size, rest = size - line;
	struct pl_filter_rules rules = { .any_vlan = 0 };
	char *text = malloc(line + 1);

	must(text != NULL);
	memcpy(text, data, line);
	text[line] = '\0';
	check_uri(text);
	free(text);
	if (rest > 1)
		memcpy(&rules, data + line + 1,
			rest - 1 < sizeof(rules) ? rest - 1 : sizeof(rules));
	if (rules.naddrs > PL_FILTER_ADDRS_MAX)
		rules.naddrs %= PL_FILTER_ADDRS_MAX + 1;
	check_program(&rules);
	return 0;
}
