/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter expressions: the text up to the first NUL; what follows it are the bytes of a path and hops. */
#include "fuzz.h"
#include "record/where.h"

enum { HOPS = 4 };

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
	r = pl_where_new(&where, text, &diag);
	if (r < 0) {
		must(diag.text[0] != '\0');
		must(diag.line == 1 && diag.column >= 1 && diag.column <= len + 1);
		goto done;
	}
	memcpy(&path, data + len, left < sizeof(path) ? left : sizeof(path));
	if (left > sizeof(path))
		memcpy(hops, data + len + sizeof(path),
			left - sizeof(path) < sizeof(hops) ? left - sizeof(path) : sizeof(hops));
	matched = pl_where_match(where, &path, hops, HOPS);
	must(matched == pl_where_match(where, &path, hops, HOPS));
	(void)pl_where_match(where, &path, hops, 0);
	pl_where_free(where);
done:
	free(text);
	return 0;
}
