/* SPDX-License-Identifier: BSD-2-Clause */
/* Impairments of a lab's links: every key, and wrong words. */
#include "base/test.h"
#include "lab/wires.h"

static struct pl_lab_impairments i;
static struct pl_diag diag;

static int word(const char *text)
{
	diag = (struct pl_diag){ .text = "" };
	return pl_lab_impair_word(&i, text, &diag);
}

static void test_taken(void)
{
	static const char *const words[] = { "rate=10M", "queue=64KiB", "delay=5ms",
		"jitter=normal:1ms,200us", "loss=0.01", "to_bad=0.001", "to_good=0.1",
		"bad_loss=0.5", "lose=0,5,10+2/100,17", "copy=3,4", "hold=6", "jitter_reorders=yes",
		"duplicate=0.02", "corrupt=0.03", "reorder=0.04", "reorder_time=2ms", "down=yes" };

	for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
		eq(word(words[k]), 0, "%s", words[k]);
	eq(i.port.rate_bps, 10000000);
	eq(i.port.classes[0].limit_bytes, 65536);
	eq(i.link.delay_ns, 5000000);
	eq(i.link.jitter.kind, PL_DIST_NORMAL);
	ok(i.link.loss > 0.0099 && i.link.loss < 0.0101);
	ok(i.link.to_bad < 0.0011 && i.link.to_good > 0.09 && i.link.bad_loss > 0.49);
	eq(i.link.n_lose, 3);
	eq(i.link.lose[2], 17);
	eq(i.link.lose_first, 10);
	eq(i.link.lose_run, 2);
	eq(i.link.lose_period, 100);
	eq(i.link.n_copy, 2);
	eq(i.link.copy[1], 4);
	eq(i.link.n_hold, 1);
	eq(i.link.hold[0], 6);
	ok(i.link.jitter_reorders);
	ok(i.link.duplicate > 0.019 && i.link.corrupt > 0.029 && i.link.reorder > 0.039);
	eq(i.link.reorder_ns, 2000000);
	ok(i.link.down);
	eq(word("rate=0"), 0, "no rate");
	eq(word("jitter=0"), 0, "no jitter");
	eq(word("lose="), 0, "none by number");
	eq(word("copy="), 0, "no copy by number");
	eq(i.link.n_copy, 0);
	eq(i.link.lose_run, 0);
	eq(i.port.rate_bps, 0);
	eq(i.link.jitter.kind, PL_DIST_DEFAULT);
	eq(i.link.n_lose, 0);
}

static void test_refused(void)
{
	static const struct {
		const char *word, *says;
	} bad[] = {
		{ "", "not KEY=VALUE" },
		{ "loss", "did you mean 'loss'?" },
		{ "=", "no key ''" },
		{ "los=1", "did you mean 'loss'?" },
		{ "loss=", "no value of loss" },
		{ "loss=1.1", "no value of loss" },
		{ "loss=nan", "no value of loss" },
		{ "delay=11s", "no value of delay" },
		{ "delay=5", "no value of delay" },
		{ "rate=1", "no value of rate" },
		{ "rate=1T", "no value of rate" },
		{ "queue=0", "no value of queue" },
		{ "queue=2GiB", "no value of queue" },
		{ "jitter=often:5", "no value of jitter" },
		{ "lose=1,,2", "no value of lose" },
		{ "lose=x", "no value of lose" },
		{ "lose=1+2", "no value of lose" },
		{ "lose=1+0/10", "no value of lose" },
		{ "lose=1+11/10", "no value of lose" },
		{ "lose=1/2+3", "no value of lose" },
		{ "lose=1+1/10,5+1/10", "no value of lose" },
		{ "copy=1+1/10", "no value of copy" },
		{ "hold=-1", "no value of hold" },
		{ "lose=99999999999999999999999999", "no value of lose" },
		{ "down=maybe", "no value of down" },
		{ "a_key_that_is_much_longer_than_any_there_is=1", "no key" },
	};

	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		ok(word(bad[k].word) < 0, "refused: '%s'", bad[k].word);
		ok(strstr(diag.text, bad[k].says) != NULL, "%s", diag.text);
	}
}

int main(void)
{
	test_taken();
	test_refused();
	return pl_test_done();
}
