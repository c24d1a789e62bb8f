/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads keys of flows, queues and drops. */
#include "ask/query_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/num.h"

#define FLOW_TEXT 160

const char *pl_key_source_next(struct pl_key_source *s)
{
	ssize_t n;

	if (s->n != 1 || strcmp(s->keys[0], "-") != 0)
		return s->at < s->n ? s->keys[s->at++] : NULL;
	do {
		n = getline(&s->line, &s->room, stdin);
		if (n < 0 && ferror(stdin)) {
			s->failed = true;
			pl_complain("standard input: %s", strerror(errno));
		}
		if (n < 0)
			return NULL;
		while (n > 0 && (s->line[n - 1] == '\n' || s->line[n - 1] == '\r'))
			s->line[--n] = '\0';
	} while (n == 0);
	return s->line;
}

void pl_key_source_done(struct pl_key_source *s)
{
	free(s->line);
}

static int endpoint(const char *text, struct pl_addr *addr, uint16_t *port, bool *has_port)
{
	*has_port = false;
	if (pl_parse_addr(text, addr) == 0)
		return 0;
	*has_port = true;
	return text[0] == ':' || text[0] == '*' ? -EINVAL : pl_parse_endpoint(text, addr, port);
}

static int protocol(const char *text, struct pl_path *flow)
{
	static const struct {
		const char *name;
		uint8_t number;
	} known[] = { { "tcp", 6 }, { "udp", 17 }, { "icmp", 1 }, { "icmp6", 58 },
		{ "sctp", 132 } };
	uint64_t number;

	flow->present |= PL_PATH_HAS_proto;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(text, known[i].name) == 0) {
			flow->proto = known[i].number;
			return 0;
		}
	}
	if (pl_parse_u64(text, &number) < 0 || number > UINT8_MAX)
		return -EINVAL;
	flow->proto = (uint8_t)number;
	return 0;
}

/* PL_PATH_HAS_proto usually covers the addresses too (fields.def): here it means that the protocol
 * was given. */
int pl_query_flow(const char *text, struct pl_path *ret)
{
	char copy[FLOW_TEXT], *middle, *slash;
	struct pl_path flow = { .present = 0 };
	bool ports[2];

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	snprintf(copy, sizeof(copy), "%s", text);
	middle = strpbrk(copy, ",>");
	if (middle == NULL)
		return -EINVAL;
	*middle++ = '\0';
	slash = strchr(middle, '/');
	if (slash != NULL)
		*slash++ = '\0';
	if (endpoint(copy, &flow.src, &flow.sport, &ports[0]) < 0 ||
		endpoint(middle, &flow.dst, &flow.dport, &ports[1]) < 0 || ports[0] != ports[1] ||
		pl_addr_is_v4(&flow.src) != pl_addr_is_v4(&flow.dst) ||
		(slash != NULL && protocol(slash, &flow) < 0))
		return -EINVAL;
	*ret = flow;
	return 0;
}

int pl_query_numbers(const char *text, uint64_t *ret, unsigned int n)
{
	char copy[64], *rest = copy, *item;
	unsigned int got = 0;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	snprintf(copy, sizeof(copy), "%s", text);
	while ((item = strsep(&rest, "/")) != NULL) {
		if (got == n || pl_parse_u64(item, &ret[got]) < 0 ||
			(got > 0 && ret[got] >= PL_HISTORY_ANY))
			return -EINVAL;
		got++;
	}
	while (got < n)
		ret[got++] = PL_HISTORY_ANY;
	return 0;
}
