/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter expressions: the text up to the first NUL; what follows it are the bytes of a path and
 * hops. */
#include <stdio.h>

#include "fuzz.h"
#include "record/where.h"

enum { HOPS = 4 };

/* An expression over one hop, within "any hop (…)" and "all hops (…)", is what it is for the hops
 * one by one. */
static void same_hop(const char *text, const struct pl_path *path, const struct pl_hop *hops)
{
	const char *const forms[] = { "any hop (%s)", "all hops (%s)" };
	struct pl_where *flat, *whole;
	const struct pl_field *fields;
	unsigned int matched = 0;
	size_t n;

	fields = pl_fields(PL_KIND_HOP, &n);
	if (strlen(text) + 16 > PL_WHERE_TEXT_MAX ||
		pl_where_new_over(&flat, fields, n, text, NULL) < 0)
		return;
	for (unsigned int i = 0; i < HOPS; i++)
		matched += pl_where_match_row(flat, &hops[i], hops[i].present);
	for (unsigned int i = 0; i < 2; i++) {
		char *of_hop = NULL;

		must(asprintf(&of_hop, forms[i], text) > 0);
		/* It may be as deep as allowed. */
		if (pl_where_new(&whole, of_hop, NULL) == 0) {
			must(pl_where_match(whole, path, hops, HOPS) ==
				(i == 0 ? matched > 0 : matched == HOPS));
			must(!pl_where_match(whole, path, hops, 0));
			pl_where_free(whole);
		} else {
			must(strchr(text, '(') != NULL);
		}
		free(of_hop);
	}
	pl_where_free(flat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_where *where = NULL;
	struct pl_diag diag = { 0 };
	struct pl_path path = { 0 };
	struct pl_hop hops[HOPS] = { 0 };
	const uint8_t *nul = memchr(data, 0, size);
	size_t len = nul != NULL ? (size_t)(nul - data) : size, left = size - len;
	char *text = malloc(len + 1);
	bool matched;
	int r;

	must(text != NULL);
	memcpy(text, data, len);
	text[len] = '\0';
	memcpy(&path, data + len, left < sizeof(path) ? left : sizeof(path));
	if (left > sizeof(path))
		memcpy(hops, data + len + sizeof(path),
			left - sizeof(path) < sizeof(hops) ? left - sizeof(path) : sizeof(hops));
	same_hop(text, &path, hops);
	r = pl_where_new(&where, text, &diag);
	if (r < 0) {
		must(diag.text[0] != '\0');
		must(diag.line == 1 && diag.column >= 1 && diag.column <= len + 1);
		goto done;
	}
	matched = pl_where_match(where, &path, hops, HOPS);
	must(matched == pl_where_match(where, &path, hops, HOPS));
	(void)pl_where_match(where, &path, hops, 0);
	pl_where_free(where);
done:
	free(text);
	return 0;
}
