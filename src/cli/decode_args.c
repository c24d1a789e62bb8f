/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of the decoder. */
#include "cli/decode_args.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "cli/args.h"
#include "cli/command.h"
#include "wire/layers.h"
#include "wire/report.h"

/* In the order of the enums they stand for. */
const char *const pl_arg_report_versions[] = { "0.5", "1.0", "2.0", NULL };
const char *const pl_arg_dialects[] = { "spec", "intcollector", "geant", "noviflow", "host-int",
	"v0.4", NULL };
const char *const pl_arg_queue_words[] = { "auto", "8+24", "16+16", NULL };
const char *const pl_arg_placements[] = { "auto", "before-options", "after-options", NULL };
const char *const pl_arg_units[] = { "ns", "us", NULL };

_Static_assert(sizeof(pl_arg_report_versions) / sizeof(char *) == PL_REPORT_VERSION_MAX + 1,
	"a word per report version");
_Static_assert(
	sizeof(pl_arg_dialects) / sizeof(char *) == PL_DIALECT_MAX + 1, "a word per dialect");
_Static_assert(PL_QUEUE_WORD_8_24 == 1 && PL_QUEUE_WORD_16_16 == 2, "as listed");
_Static_assert(PL_TCP_BEFORE_OPTIONS == 1 && PL_TCP_AFTER_OPTIONS == 2, "as listed");
_Static_assert(PL_UNIT_NS == 0 && PL_UNIT_US == 1, "as listed");

/* Returns the place of a word that the option parser has checked; 0 when the option was not given. */
static unsigned int place(const char *const *words, const char *word)
{
	return word == NULL ? 0 : pl_opt_place(words, word);
}

static int usage(const char *option, const char *text, const char *wanted)
{
	return pl_fail(PL_EXIT_USAGE, "--%s: \"%s\" is not %s", option, text, wanted);
}

/* "0x17/0x3f", "23": value, and mask (all six bits when there is none). */
static int parse_dscp(const char *text, struct pl_profile *ret)
{
	uint64_t value, mask = 0x3f;
	const char *slash = strchr(text, '/');
	char *copy = strndup(text, slash == NULL ? strlen(text) : (size_t)(slash - text));
	bool good = copy != NULL && pl_parse_u64(copy, &value) == 0 && value <= 0x3f &&
		    (slash == NULL ||
			    (pl_parse_u64(slash + 1, &mask) == 0 && mask >= 1 && mask <= 0x3f)) &&
		    (value & ~mask) == 0;

	free(copy);
	if (!good)
		return usage("dscp", text,
			"VALUE or VALUE/MASK of at most 0x3f, with the value inside the mask");
	ret->dscp_set = true;
	ret->dscp_value = (uint8_t)value;
	ret->dscp_mask = (uint8_t)mask;
	return 0;
}

static int parse_marker(const char *text, struct pl_profile *ret)
{
	const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
	size_t n = strlen(digits);

	if (n == 0 || n > 16 || strspn(digits, "0123456789abcdefABCDEF") != n)
		return usage("marker", text, "a number of up to 16 hexadecimal digits");
	ret->marker_set = true;
	ret->marker = strtoull(digits, NULL, 16);
	return 0;
}

static int apply_ports(const struct pl_decode_args *args, struct pl_decode_options *ret)
{
	const unsigned int max = sizeof(ret->report_ports) / sizeof(ret->report_ports[0]);
	uint64_t port;

	if (args->report_ports.n > max)
		return pl_fail(PL_EXIT_USAGE, "--report-port: at most %u ports", max);
	for (size_t i = 0; i < args->report_ports.n; i++) {
		const char *text = args->report_ports.items[i];

		if (pl_parse_u64(text, &port) < 0 || port < 1 || port > UINT16_MAX)
			return usage("report-port", text, "a port from 1 to 65535");
		ret->report_ports[ret->n_report_ports++] = (uint16_t)port;
	}
	return 0;
}

static int apply_ioam_times(const struct pl_decode_args *args, struct pl_decode_options *ret)
{
	if (args->ioam_times.n > PL_IOAM_NAMESPACES_MAX)
		return pl_fail(PL_EXIT_USAGE, "--ioam-time: at most %d namespaces",
			PL_IOAM_NAMESPACES_MAX);
	for (size_t i = 0; i < args->ioam_times.n; i++) {
		if (pl_ioam_namespace_parse(&ret->ioam_namespaces[i], args->ioam_times.items[i]) <
			0)
			return usage("ioam-time", args->ioam_times.items[i],
				"NAMESPACE=posix, =ptp or =ntp with a namespace from 0 to 65535");
		ret->n_ioam_namespaces++;
	}
	return 0;
}

int pl_vxlan_ports_apply(const struct pl_opt_list *ports, uint64_t *ret)
{
	const char *bad;

	if (pl_vxlan_ports_parse(ret, (const char *const *)ports->items, ports->n, &bad) == 0)
		return 0;
	if (bad != NULL)
		return usage("vxlan-port", bad, "a port from 1 to 65535");
	return pl_fail(PL_EXIT_USAGE, "--vxlan-port: at most %d ports", PL_PORTS_MAX - 1);
}

/* Sets a 16-bit number; prints errors. */
static int apply_u16(const char *option, uint64_t value, uint16_t *ret)
{
	if (value > UINT16_MAX)
		return pl_fail(PL_EXIT_USAGE, "--%s: at most 65535", option);
	*ret = (uint16_t)value;
	return 0;
}

/* Sets a number of words; prints errors. */
static int apply_words(const char *option, uint64_t value, unsigned int max, uint8_t *ret)
{
	if (value > max)
		return pl_fail(PL_EXIT_USAGE, "--%s: at most %u", option, max);
	*ret = (uint8_t)value;
	return 0;
}

int pl_decode_args_apply(const struct pl_decode_args *args, struct pl_decode_options *ret,
	struct pl_profile *profile)
{
	int r = apply_ports(args, ret);

	memset(profile, 0, sizeof(*profile));
	if (args->report_version != NULL)
		profile->report_version =
			1 + (int)place(pl_arg_report_versions, args->report_version);
	if (args->dialect != NULL) {
		profile->hints.dialect = (uint8_t)place(pl_arg_dialects, args->dialect);
		profile->hints.dialect_pinned = true;
	}
	profile->hints.queue_word = (uint8_t)place(pl_arg_queue_words, args->queue_word);
	profile->tcp_placement = (uint8_t)place(pl_arg_placements, args->tcp_placement);
	profile->timestamp_unit = (uint8_t)place(pl_arg_units, args->time_unit);
	profile->latency_unit = (uint8_t)place(pl_arg_units, args->latency_unit);
	if (r == 0)
		r = apply_u16("int-port", args->int_port, &profile->int_port);
	if (r == 0)
		r = apply_u16("gre-type", args->gre_type, &ret->gre_int_ethertype);
	if (r == 0)
		r = apply_u16("geneve-class", args->geneve_class, &ret->geneve_int_class);
	if (r == 0)
		r = apply_words("trailing-words", args->trailing_words, PL_INT_TRAILING_MAX,
			&profile->hints.trailing_words);
	if (r == 0)
		r = apply_words("source-words", args->source_words, PL_INT_SOURCE_MAX,
			&profile->hints.source_words);
	if (r == 0)
		r = apply_ioam_times(args, ret);
	if (r == 0)
		r = pl_vxlan_ports_apply(&args->vxlan_ports, &ret->vxlan_ports);
	if (r == 0 && args->dscp != NULL)
		r = parse_dscp(args->dscp, profile);
	if (r == 0 && args->marker != NULL)
		r = parse_marker(args->marker, profile);
	ret->profiles = profile;
	ret->n_profiles = 1;
	return r;
}

bool pl_decode_args_given(const struct pl_decode_args *args)
{
	const char *const texts[] = { args->report_version, args->dialect, args->queue_word,
		args->tcp_placement, args->dscp, args->marker, args->time_unit,
		args->latency_unit };
	bool given = args->report_ports.n > 0 || args->ioam_times.n > 0 ||
		     args->vxlan_ports.n > 0 || args->int_port != 0 || args->gre_type != 0 ||
		     args->geneve_class != 0 || args->trailing_words != 0 ||
		     args->source_words != 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		given = given || texts[i] != NULL;
	return given;
}

void pl_decode_args_done(struct pl_decode_args *args)
{
	pl_opt_list_done(&args->report_ports);
	pl_opt_list_done(&args->ioam_times);
	pl_opt_list_done(&args->vxlan_ports);
}
