/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/ and record/ do not see each other, yet must call versions and dialects the same. Here both
 * are seen. */
#include "base/test.h"
#include "record/record.h"
#include "wire/int.h"
#include "wire/report.h"

int main(void)
{
	for (int v = 0; v < PL_REPORT_VERSION_MAX; v++)
		streq(pl_form_word(PL_FORM_REPORT_VERSION, (unsigned int)v),
			pl_report_version_name((enum pl_report_version)v));
	ok(pl_form_word(PL_FORM_REPORT_VERSION, PL_REPORT_VERSION_MAX) == NULL);
	ok(pl_form_word(PL_FORM_INT_VERSION, PL_INT_VERSION_MAX) == NULL);
	for (int d = 0; d < PL_DIALECT_MAX; d++)
		streq(pl_form_word(PL_FORM_DIALECT, (unsigned int)d),
			pl_dialect_name((enum pl_dialect)d));
	ok(pl_form_word(PL_FORM_DIALECT, PL_DIALECT_MAX) == NULL);
	return pl_test_done();
}
