/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's configuration file, with its own schema and the relations between keys. A refusal
 * says why and leaves nothing allocated; what was accepted can be dumped and read again, and the
 * dump is the same; the options that follow from it are within what the parts accept.
 */
#include "base/buf.h"
#include "fuzz.h"
#include "pipeline/config.h"

static void options(const struct pl_config *config)
{
	struct pl_aggregate_options aggregate = { 0 };
	struct pl_decode_options decode = { 0 };
	struct pl_detect_options detect = { 0 };
	struct pl_profile *profiles = NULL;
	struct pl_diag diag = { 0 };
	unsigned int sockets = 0;
	int n;

	n = pl_config_profiles(config, &profiles, &diag);
	must(n >= 0);
	for (int i = 0; i < n; i++)
		must(profiles[i].prefix_bits <= 128 && profiles[i].dscp_value < 64);
	free(profiles);
	pl_config_decode(config, &decode);
	pl_config_aggregate(config, &aggregate);
	pl_config_detect(config, &detect);
	must(decode.n_report_ports <= 16 && decode.n_ioam_namespaces <= 16);
	must(pl_decode_memory(&decode) > 0);
	for (size_t i = 0; i < config->sources.n; i++) {
		const struct pl_config_source *s =
			(const struct pl_config_source *)config->sources.items + i;
		char uri[4096];

		if (pl_config_source_uri(s, uri, sizeof(uri)))
			must(strlen(uri) < sizeof(uri) &&
				strncmp(uri, s->uri, strcspn(s->uri, "?")) == 0);
		sockets += pl_config_sockets(s);
	}
	/* And one each for tables in the kernel, one for questions and marks. */
	must(pl_config_workers(config) >= sockets && pl_config_workers(config) <= PL_WORKERS_MAX);
	must(config->queries.n + config->marks.n == 0 || pl_config_workers(config) > sockets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_config config = { 0 }, again = { 0 };
	struct pl_diag diag = { 0 };
	struct pl_buf first, second;

	if (pl_config_parse(&config, "fuzz", (const char *)data, size, &diag) < 0) {
		must(diag.text[0] != '\0');
		return 0;
	}
	options(&config);
	pl_buf_init(&first);
	pl_buf_init(&second);
	pl_conf_dump(pl_config_rows, &config, &first);
	must(!first.failed);
	if (pl_config_parse(&again, "dump", first.data, first.len, &diag) != 0) {
		fprintf(stderr, "%u:%u: %s\n%s", diag.line, diag.column, diag.text, first.data);
		must(false);
	}
	pl_conf_dump(pl_config_rows, &again, &second);
	must(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	pl_buf_done(&first);
	pl_buf_done(&second);
	pl_config_done(&config);
	pl_config_done(&again);
	return 0;
}
