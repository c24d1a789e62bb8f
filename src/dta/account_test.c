/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>

#include "base/test.h"
#include "dta/account.h"

#define TRANSLATOR                                                                                 \
	"{\"packets\":100,\"kernel_drops\":5,\"not_udp\":0,\"reports\":100,\"accepted\":90,"       \
	"\"duplicates\":4,\"unreadable\":{\"short\":1,\"opcode\":2},\"refused\":{\"store\":3},"    \
	"\"held\":0,\"writes\":70,\"adds\":30,\"out\":{\"writes\":66,\"adds\":28,\"lost\":3,"      \
	"\"full\":1,\"down\":1,\"outside\":1,\"repeated\":9,\"collectors\":[{\"connections\":2},"  \
	"{\"connections\":1}]}}"

static struct pl_dta_account whole(void)
{
	struct pl_dta_account a = { 0 };
	struct pl_diag diag = { .text = "" };
	uint64_t made;

	ok(pl_dta_account_translator(&a, TRANSLATOR, &diag) == 0, "%s", diag.text);
	eq(pl_dta_account_collector(&a, "{\"writes\":40,\"adds\":20,\"more\":1}", &diag), 0);
	eq(pl_dta_account_collector(
		   &a, "{\"writes\":25,\"adds\":8,\"port\":{\"kernel_drops\":6}}", &diag),
		0, "they add up");
	pl_dta_account_generator(&a, "60 packets (60 reports, 900 bytes) in 1 s", &made);
	eq(made, 60);
	pl_dta_account_generator(&a, "45 packets (45 reports, 900 bytes) in 1 s", &made);
	eq(made, 45);
	pl_dta_account_close(&a);
	return a;
}

static void test_sums(void)
{
	const struct pl_dta_account a = whole();

	eq(a.generated, 105);
	ok(a.datagrams == 100 && a.kernel_drops == 5);
	ok(a.unreadable == 3 && a.refused == 3 && a.duplicates == 4);
	ok(a.operations == 100 && a.done == 94 && a.lost == 3);
	ok(a.repeated == 9 && a.connections == 3);
	ok(a.executed == 93 && a.collector_drops == 6);
	ok(a.closed, "every line holds");
}

/* Each line by itself, one too many and one too few. */
static void test_does_not_close(void)
{
	static const size_t fields[] = { offsetof(struct pl_dta_account, generated),
		offsetof(struct pl_dta_account, datagrams),
		offsetof(struct pl_dta_account, kernel_drops),
		offsetof(struct pl_dta_account, reports), offsetof(struct pl_dta_account, accepted),
		offsetof(struct pl_dta_account, duplicates),
		offsetof(struct pl_dta_account, unreadable),
		offsetof(struct pl_dta_account, refused),
		offsetof(struct pl_dta_account, operations), offsetof(struct pl_dta_account, done),
		offsetof(struct pl_dta_account, lost), offsetof(struct pl_dta_account, full),
		offsetof(struct pl_dta_account, down), offsetof(struct pl_dta_account, outside) };
	struct pl_dta_account a;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		for (int by = -1; by <= 1; by += 2) {
			uint64_t v;

			a = whole();
			memcpy(&v, (char *)&a + fields[i], sizeof(v));
			v += (uint64_t)by;
			memcpy((char *)&a + fields[i], &v, sizeof(v));
			pl_dta_account_close(&a);
			ok(!a.closed, "field %zu by %d", i, by);
		}
	}
	a = whole();
	a.held = 1;
	pl_dta_account_close(&a);
	ok(!a.closed, "something is held");
	a = whole();
	a.executed = a.done + a.lost + 1;
	pl_dta_account_close(&a);
	ok(!a.closed, "more was executed than can be");
	a.executed--;
	pl_dta_account_close(&a);
	ok(a.closed, "what was lost with a connection may have been executed");
	a = whole();
	a.have_generated = false;
	a.generated = 0;
	pl_dta_account_close(&a);
	ok(a.closed, "nothing was generated here: nobody knows what was sent");
}

static void test_refused(void)
{
	static const char *const words[] = { NULL, "", "[]", "12", "{", "{}", "{\"writes\":1}",
		"{\"writes\":1,\"adds\":-1}", "{\"writes\":1,\"adds\":\"2\"}",
		"{\"writes\":1,\"writes\":2,\"adds\":1}", "{\"writes\":1.5,\"adds\":1}" };
	struct pl_dta_account a = { 0 };
	struct pl_diag diag;
	uint64_t made;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		diag = (struct pl_diag){ .text = "" };
		ok(pl_dta_account_collector(&a, words[i], &diag) < 0 && diag.text[0] != '\0',
			"collector %zu: %s", i, diag.text);
		diag = (struct pl_diag){ .text = "" };
		ok(pl_dta_account_translator(&a, words[i], &diag) < 0 && diag.text[0] != '\0',
			"translator %zu: %s", i, diag.text);
	}
	ok(pl_dta_account_translator(&a, words[0], NULL) < 0, "also without anybody to tell");
	pl_dta_account_generator(&a, "pathline: could not keep up", &made);
	ok(made == 0 && !a.have_generated, "a line that is no account");
}

int main(void)
{
	test_sums();
	test_does_not_close();
	test_refused();
	return pl_test_done();
}
