/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of records as they come from a topic: a byte for the kind, then headers, each a byte for
 * its name, a byte for its length (255: without a value) and the value, up to a name that is 0, and
 * the rest is the message's value. Whatever it is, it ends in one verdict; a good one has as many
 * records as fit its bytes, and its headers written anew read the same.
 */
#include "fuzz.h"
#include "kafka/message.h"
#include "kafka/uri.h"

static const char *const names[] = { "", "f", "n", "x", "s", "t0", "t1", "d", "traceparent", "F",
	"c" };
#define NAMES (sizeof(names) / sizeof(names[0]))

static void write_anew(const struct pl_kafka_message *m, size_t len)
{
	struct pl_kafka_header made[PL_KAFKA_HEADERS];
	struct pl_kafka_reading again;

	pl_kafka_headers_make(m, made);
	pl_kafka_reading_init(&again);
	for (unsigned int i = 0; i < PL_KAFKA_HEADERS; i++)
		pl_kafka_reading_header(&again, made[i].name, made[i].value, made[i].len);
	must(pl_kafka_reading_end(&again, m->kind, len) == PL_KAFKA_GOOD);
	must(again.message.n == m->n && again.message.exporter == m->exporter);
	must(again.message.sequence == m->sequence && again.message.dropped == m->dropped);
	must(again.message.oldest_ns == m->oldest_ns && again.message.newest_ns == m->newest_ns);
	must(again.message.clock == m->clock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum pl_flat_kind kind;
	struct pl_kafka_reading reading;
	enum pl_kafka_verdict verdict;
	size_t at = 1, len;

	if (size == 0)
		return 0;
	kind = (enum pl_flat_kind)(data[0] % PL_FLAT_MAX);
	pl_kafka_reading_init(&reading);
	while (at + 1 < size && data[at] % NAMES != 0) {
		const char *name = names[data[at] % NAMES];
		uint8_t *value = NULL;

		len = data[at + 1];
		at += 2;
		if (len == 255) {
			pl_kafka_reading_header(&reading, name, NULL, 0);
			continue;
		}
		if (len > size - at)
			len = size - at;
		/* Of its own size, so that reading behind it is seen. */
		value = malloc(len > 0 ? len : 1);
		must(value != NULL);
		memcpy(value, data + at, len);
		pl_kafka_reading_header(&reading, name, value, len);
		free(value);
		at += len;
	}
	len = size - at;
	verdict = pl_kafka_reading_end(&reading, kind, len);
	must((unsigned int)verdict < PL_KAFKA_VERDICTS);
	if (verdict != PL_KAFKA_GOOD)
		return 0;
	must(reading.message.kind == kind && reading.message.n > 0);
	must(reading.message.n <= PL_KAFKA_RECORDS_MAX);
	must((size_t)reading.message.n * pl_flat(kind)->size == len);
	write_anew(&reading.message, len);
	return 0;
}
