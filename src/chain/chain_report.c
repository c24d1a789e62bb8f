/* SPDX-License-Identifier: BSD-2-Clause */
/* What a chain prints: how its regions are, and what came of it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "chain/chain.h"

static void say_difference(void *arg, const char *text)
{
	(void)arg;
	pl_say("%s", text);
}

unsigned int pl_chain_say_differences(struct pl_chain *c)
{
	return pl_dta_regions_compare(&c->regions, say_difference, NULL);
}

static unsigned int check_json(struct pl_chain *c, struct pl_buf *text)
{
	struct pl_json json;
	unsigned int n;

	pl_json_init(&json, text);
	pl_json_object(&json);
	pl_json_key(&json, "kind");
	pl_json_str(&json, "check");
	pl_json_key(&json, "folder");
	if (c->conf.folder != NULL)
		pl_json_str(&json, c->conf.folder);
	else
		pl_json_null(&json);
	n = pl_dta_regions_json(&c->regions, &json);
	pl_json_object_end(&json);
	pl_buf_chr(text, '\n');
	return n;
}

static unsigned int check_table(struct pl_chain *c, struct pl_buf *text)
{
	const unsigned int n = pl_chain_say_differences(c);

	for (unsigned int i = 0; n == 0 && i < c->regions.n; i++)
		pl_buf_printf(text, "%s: %s\n", c->regions.paths[i],
			pl_dta_regions_made(&c->regions, i) ? "as the file says" : "to be made");
	return n;
}

static void print(const struct pl_chain *c, struct pl_buf *text)
{
	if (text->failed)
		pl_say("%s", strerror(ENOMEM));
	else
		c->o->print.text(c->o->print.arg, text->data, text->len);
	pl_buf_done(text);
}

unsigned int pl_chain_print_regions(struct pl_chain *c)
{
	struct pl_buf text;
	unsigned int n;

	pl_buf_init(&text);
	n = c->o->json ? check_json(c, &text) : check_table(c, &text);
	print(c, &text);
	return n;
}

/* ---- what came of it, for people and programs ---- */

static uint64_t wrong_answers(const struct pl_chain *c)
{
	uint64_t n = 0;

	for (unsigned int s = 0; s < c->n_stores; s++)
		n += c->checked[s].wrong;
	return n;
}

static void put_table(const struct pl_chain *c, struct pl_buf *text)
{
	pl_buf_printf(text, "%-16s %-10s %9s %9s %6s %9s  %s\n", "STORE", "PRIMITIVE", "ASKED",
		"RIGHT", "WRONG", "NOT FOUND", "EXPECTED");
	for (unsigned int s = 0; s < c->n_stores; s++) {
		const struct pl_dta_checked *k = &c->checked[s];

		if (c->stores[s].reports == 0)
			continue;
		pl_buf_printf(text,
			"%-16s %-10s %9" PRIu64 " %9" PRIu64 " %6" PRIu64 " %9" PRIu64 "  %.0f\n",
			c->stores[s].name, pl_primitive_name(c->stores[s].primitive + 1), k->asked,
			k->right, k->wrong, k->missing, k->expected * (double)k->asked);
	}
	pl_buf_chr(text, '\n');
	pl_dta_account_text(&c->account, text);
}

static void put_json(const struct pl_chain *c, struct pl_buf *text)
{
	struct pl_json object, *json = &object;

	pl_json_init(json, text);
	pl_json_object(json);
	pl_json_key(json, "kind");
	pl_json_str(json, "end");
	pl_json_key(json, "stores");
	pl_json_array(json);
	for (unsigned int s = 0; s < c->n_stores; s++) {
		const struct pl_dta_checked *k = &c->checked[s];

		pl_json_object(json);
		pl_json_key(json, "store");
		pl_json_str(json, c->stores[s].name);
		pl_json_number(json, "asked", k->asked);
		pl_json_number(json, "right", k->right);
		pl_json_number(json, "wrong", k->wrong);
		pl_json_number(json, "not_found", k->missing);
		pl_json_number(json, "not_found_expected",
			(uint64_t)(k->expected * (double)k->asked + 0.5));
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
	pl_json_key(json, "account");
	pl_dta_account_json(&c->account, json);
	pl_json_object_end(json);
	pl_buf_chr(text, '\n');
}

bool pl_chain_report(const struct pl_chain *c)
{
	struct pl_buf text;

	pl_buf_init(&text);
	if (c->o->json)
		put_json(c, &text);
	else
		put_table(c, &text);
	print(c, &text);
	return wrong_answers(c) == 0 && c->account.closed;
}
