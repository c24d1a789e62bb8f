/* SPDX-License-Identifier: BSD-2-Clause */
/* Telemetry reports: a datagram holds a bounded number of them, and what they point at lies in it. */
#include "fuzz.h"
#include "wire/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_report_iter it;
	struct pl_report report;
	struct pl_cursor c;
	enum pl_verdict v;
	size_t n = 0;

	if (size < 1)
		return 0;
	c = pl_cursor(data + 1, size - 1);
	v = pl_report_begin(&it, c, data[0] % 4 - 1);
	must(v < PL_V_MAX);
	if (v != PL_V_OK)
		return 0;
	memset(&report, 0, sizeof(report));
	while (pl_report_next(&it, &report, &v)) {
		/* The smallest individual report is a word; the older versions hold one. */
		must(++n <= size / 4 + 1);
		must(report.version < PL_REPORT_VERSION_MAX);
		must(report.version == PL_REPORT_V20 || n == 1);
		must(report.hw_id < 64);
		must(report.inner_link <= PL_LINK_MAX);
		if (report.inner.pos != NULL)
			must(report.inner.pos >= data && report.inner.pos <= report.inner.end &&
				report.inner.end <= data + size);
	}
	must(v < PL_V_MAX);
	return 0;
}
