/* SPDX-License-Identifier: BSD-2-Clause */
/* Logs of commands: texts that they have, and last lines, also of long ones. */
#include "lab/keeping.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"

static void append(const char *text, unsigned int times)
{
	FILE *f = fopen("talker.log", "ae");

	for (unsigned int i = 0; f != NULL && i < times; i++)
		fputs(text, f);
	ok(f != NULL && fclose(f) == 0, "the log grows");
}

static void ends_with(const char *says)
{
	struct pl_diag diag = { .text = "" };

	(void)pl_lab_say_ended("talker", "talk", &diag);
	streq(diag.text, says);
}

int main(void)
{
	char folder[] = "/tmp/keeping-test-XXXXXX";
	uint64_t at = 0;

	ok(mkdtemp(folder) != NULL && chdir(folder) == 0, "a folder");
	ok(!pl_lab_said("talker", "ready", &at) && at == 0, "no log");
	ends_with("talker: 'talk' ended: it said nothing");
	append("starts\n\n", 1);
	ends_with("talker: 'talk' ended: starts");
	ok(!pl_lab_said("talker", "ready", &at), "it is not ready");
	append("the same line again and again\n", 100000);
	ok(!pl_lab_said("talker", "ready", &at) && at > 1 << 20, "nor after three megabytes");
	append("re", 1);
	ok(!pl_lab_said("talker", "ready", &at), "half of the text");
	append("ady\nover\n", 1);
	ok(pl_lab_said("talker", "ready", &at), "and the other half");
	at = 0;
	ok(pl_lab_said("talker", "ready", &at), "the same from the beginning");
	ends_with("talker: 'talk' ended: over");
	for (unsigned int shift = 4090; shift < 4110; shift++) {
		at = 0;
		ok(unlink("talker.log") == 0, "another log");
		append("x", shift);
		append("ready", 1);
		ok(pl_lab_said("talker", "ready", &at), "the text behind %u bytes", shift);
	}
	ok(unlink("talker.log") == 0 && chdir("/") == 0 && rmdir(folder) == 0, "all is gone");
	return pl_test_done();
}
