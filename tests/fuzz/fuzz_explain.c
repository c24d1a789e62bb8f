/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `pathline listen` says of a datagram that does not decode: it ends, it is whole lines, and
 * the byte it points at is one of the datagram's.
 */
#include "decode/explain.h"
#include "fuzz.h"

static void tell(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pl_explain *explain;
	static struct pl_decode *decode;
	static struct pl_record_batch out;
	static struct pl_batch in = { .n = 1 };
	const struct pl_decode_options options = { .max_exporters = 1, .max_paths = 1 };
	const char *place;
	struct pl_buf text;
	enum pl_verdict v;

	if (decode == NULL) {
		must(pl_decode_new(&decode, &options) == 0);
		must(pl_explain_new(&explain, &options, tell, NULL) == 0);
		must(pl_record_batch_init(&out, 512, 1024) == 0);
	}
	/* Every byte costs some hundred decodings. */
	if (size > 160)
		return 0;
	in.pkts[0] = (struct pl_packet){ .data = data,
		.len = (uint32_t)size,
		.wire_len = (uint32_t)size,
		.link = PL_LINK_UDP,
		.sport = 1,
		.dport = 32766 };
	pl_decode_batch(decode, &in, &out);
	pl_record_batch_clear(&out);
	v = (enum pl_verdict)pl_decode_outcomes(decode)[0].verdict;
	if (v == PL_V_OK)
		return 0;
	pl_buf_init(&text);
	pl_explain_packet(explain, &in.pkts[0], v, &text);
	must(!text.failed && text.len > 0 && text.data[text.len - 1] == '\n');
	must(strstr(text.data, pl_verdict_name(v)) != NULL);
	place = strstr(text.data, "the fault shows at byte ");
	if (place != NULL) {
		must(strtoul(place + strlen("the fault shows at byte "), NULL, 10) < size);
		must(strstr(text.data, "^^") != NULL);
	}
	pl_buf_done(&text);
	return 0;
}
