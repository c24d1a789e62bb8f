/* SPDX-License-Identifier: BSD-2-Clause */
/* Rulings on HTTP answers, clean texts, and times of retries; see sender.h. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "export/ruling.h"

void pl_words_clean(char *ret, size_t cap, const char *text, size_t len)
{
	size_t n = 0;

	while (len > 0 && n < cap - 1) {
		size_t step;
		uint32_t cp;
		bool good = pl_utf8_next(text, len, &step, &cp);

		if (good && (*text == '\n' || *text == '\r')) {
			if (n > 0)
				break; /* one line is enough */
		} else if (!good || cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) {
			ret[n++] = '?';
		} else {
			if (n + step > cap - 1)
				break;
			memcpy(ret + n, text, step);
			n += step;
		}
		text += step;
		len -= step;
	}
	ret[n] = '\0';
}

static enum pl_ruling_kind by_status(int status)
{
	if (status >= 200 && status < 300)
		return PL_RULING_DELIVERED;
	switch (status) {
	case 401:
	case 403:
	case 404:
	case 405:
	case 407:
	case 501:
		return PL_RULING_HOLD;
	case 408:
	case 425:
	case 429:
		return PL_RULING_RETRY;
	case 413:
		return PL_RULING_TOO_BIG;
	case 500:
		return PL_RULING_DOUBTFUL;
	default:
		break;
	}
	if (status >= 300 && status < 400)
		return PL_RULING_HOLD;
	return status >= 400 && status < 500 ? PL_RULING_REFUSED : PL_RULING_RETRY;
}

void pl_ruling_by_status(const struct pl_http_answer *answer, struct pl_ruling *ret)
{
	char *const words = ret->words;
	const size_t cap = sizeof(ret->words);
	size_t n = 0;

	*ret = (struct pl_ruling){ .kind = by_status(answer->status) };
	if (answer->status != 0)
		n = (size_t)snprintf(words, cap, "HTTP %d: ", answer->status);
	pl_words_clean(words + n, cap - n, answer->body, answer->len);
	if (n > 0 && words[n] == '\0')
		words[n - 2] = '\0';
}

uint64_t pl_backoff_ns(uint32_t failures, uint64_t min_ns, uint64_t max_ns, struct pl_rng *rng)
{
	uint64_t top = min_ns;

	for (uint32_t i = 1; i < failures && top < max_ns; i++)
		top = top <= UINT64_MAX / 2 ? top * 2 : UINT64_MAX;
	if (top > max_ns)
		top = max_ns;
	/* Full jitter, but at least an eighth of the minimum. */
	return min_ns / 8 + pl_rng_below(rng, top - min_ns / 8 + 1);
}
