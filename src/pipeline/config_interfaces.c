/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds two XDP programs for one interface, and two claims of one address. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "pipeline/config.h"
#include "pipeline/config_words.h"

#define DEV "dev="

/* Claim of a URI: of afxdp: and xdp: an interface's XDP program, of udp: an address. */
struct taken {
	const char *what; /* "interface" or "address"; NULL: none */
	const char *text; /* name of the interface, or the address */
	size_t n;
};

struct part {
	const char *key;
	size_t number; /* from 1; 0: there is only one */
	struct taken taken;
};

static struct taken taken_by(const char *uri)
{
	static const struct {
		const char *scheme, *what;
	} schemes[] = { { "afxdp:", "interface" }, { "xdp:", "interface" }, { "udp:", "address" } };

	for (size_t i = 0, n; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		const char *target = uri + strlen(schemes[i].scheme);

		if (strncmp(uri, schemes[i].scheme, strlen(schemes[i].scheme)) != 0)
			continue;
		if (strncmp(target, "//", 2) == 0)
			target += 2;
		n = strcspn(target, "?&");
		/* Port 0 is a new one each time. */
		if (n >= 2 && strcmp(schemes[i].what, "address") == 0 &&
			memcmp(target + n - 2, ":0", 2) == 0)
			break;
		return (struct taken){ schemes[i].what, target, n };
	}
	return (struct taken){ .what = NULL };
}

/* Returns the interface of roce://…?dev=afxdp:eth1; dev=udp: may have many writers. */
static struct taken taken_by_dev(const char *uri)
{
	const char *query = uri != NULL ? strchr(uri, '?') : NULL;
	struct taken none = { .what = NULL }, t;

	while (query != NULL && strncmp(query + 1, DEV, strlen(DEV)) != 0)
		query = strchr(query + 1, '&');
	if (query == NULL)
		return none;
	t = taken_by(query + 1 + strlen(DEV));
	return t.what != NULL && strcmp(t.what, "interface") == 0 ? t : none;
}

static bool same(const struct taken *a, const struct taken *b)
{
	return a->what != NULL && b->what != NULL && strcmp(a->what, b->what) == 0 &&
	       a->n == b->n && memcmp(a->text, b->text, a->n) == 0;
}

static void put_name(struct pl_buf *out, const struct part *p)
{
	if (p->number > 0)
		pl_buf_printf(out, "%s %zu", p->key, p->number);
	else
		pl_buf_str(out, p->key);
}

static int complain(const struct part *a, const struct part *b, struct pl_diag *diag)
{
	struct pl_buf text;

	pl_buf_init(&text);
	put_name(&text, a);
	pl_buf_str(&text, " and ");
	put_name(&text, b);
	pl_buf_printf(
		&text, " both take the %s %.*s", a->taken.what, (int)a->taken.n, a->taken.text);
	if (strcmp(a->taken.what, "interface") == 0)
		pl_buf_printf(&text,
			": it has one XDP program at a time; use packet:%.*s for one of them",
			(int)a->taken.n, a->taken.text);
	pl_diag_set(diag, "%s", text.failed ? "out of memory" : text.data);
	pl_buf_done(&text);
	return -EINVAL;
}

int pl_config_check_interfaces(const struct pl_config *c, struct pl_diag *diag)
{
	const struct pl_config_source *sources = c->sources.items;
	const struct pl_config_tap *taps = c->taps.items;
	const struct pl_config_marks *marks = c->marks.items;
	struct part *parts;
	size_t n = 3 + c->sources.n, at = 0;
	int r = 0;

	for (size_t i = 0; i < c->taps.n; i++)
		n += taps[i].sources.n;
	for (size_t i = 0; i < c->marks.n; i++)
		n += marks[i].sources.n;
	parts = calloc(n, sizeof(*parts));
	if (parts == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->sources.n; i++)
		parts[at++] = (struct part){ "source", i + 1, taken_by(sources[i].uri) };
	if (c->dta.listen != NULL)
		parts[at++] = (struct part){ "dta.listen", 0, taken_by(c->dta.listen) };
	parts[at++] = (struct part){ "dta.to", 0, taken_by_dev(c->dta.to) };
	if (c->rdma.interface != NULL)
		parts[at++] = (struct part){ "rdma.interface", 0, taken_by(c->rdma.interface) };
	for (size_t i = 0; i < c->taps.n; i++) {
		for (size_t k = 0; k < taps[i].sources.n; k++)
			parts[at++] = (struct part){ "tap", i + 1,
				taken_by(((char *const *)taps[i].sources.items)[k]) };
	}
	for (size_t i = 0; i < c->marks.n; i++) {
		for (size_t k = 0; k < marks[i].sources.n; k++)
			parts[at++] = (struct part){ "marks", i + 1,
				taken_by(((char *const *)marks[i].sources.items)[k]) };
	}
	for (size_t i = 0; r == 0 && i < at; i++) {
		for (size_t k = 0; r == 0 && k < i; k++)
			r = same(&parts[k].taken, &parts[i].taken)
				    ? complain(&parts[k], &parts[i], diag)
				    : 0;
	}
	free(parts);
	return r;
}
