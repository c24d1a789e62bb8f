/* SPDX-License-Identifier: BSD-2-Clause */
#include "web/request.h"

#include "base/num.h"
#include "base/test.h"

static void targets(void)
{
	static const struct {
		const char *raw, *path, *query;
	} good[] = {
		{ "/", "/", "" },
		{ "/metrics", "/metrics", "" },
		{ "/readyz?verbose", "/readyz", "verbose" },
		{ "/a%20b?x=%31#frag", "/a b", "x=%31" },
		{ "/a#frag?no", "/a", "" },
		{ "/%2e%2e/etc", "/../etc", "" },
		{ "/?", "/", "" },
	};
	static const char *const bad[] = { "", "metrics", "*", "http://host/", "/%", "/%4", "/%zz",
		"/%00", "/%0a", "/a\nb", "/\x7f", "/a%1", "/%1g" };
	struct pl_http_target t;
	char longer[PL_HTTP_PATH_MAX + 2];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		eq(pl_http_target_parse(&t, good[i].raw), 0, "target %s", good[i].raw);
		streq(t.path, good[i].path);
		streq(t.query, good[i].query);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(pl_http_target_parse(&t, bad[i]) < 0, "refused target %zu", i);
	memset(longer, 'a', sizeof(longer));
	longer[0] = '/';
	longer[PL_HTTP_PATH_MAX] = '\0';
	ok(pl_http_target_parse(&t, longer) < 0, "path one byte too long");
	longer[PL_HTTP_PATH_MAX - 1] = '\0';
	eq(pl_http_target_parse(&t, longer), 0, "longest path");
}

static void queries(void)
{
	char value[8];

	eq(pl_http_query_get("verbose", "verbose", value, sizeof(value)), 1);
	streq(value, "");
	eq(pl_http_query_get("a=1&verbose=ye+s%21&b=2", "verbose", value, sizeof(value)), 1);
	streq(value, "ye s!");
	eq(pl_http_query_get("verboser=1&xverbose", "verbose", value, sizeof(value)), 0);
	eq(pl_http_query_get("", "verbose", value, sizeof(value)), 0);
	eq(pl_http_query_get("&&=&", "verbose", value, sizeof(value)), 0);
	ok(pl_http_query_get("verbose=12345678", "verbose", value, sizeof(value)) < 0,
		"value too long");
	ok(pl_http_query_get("verbose=%", "verbose", value, sizeof(value)) < 0, "broken escape");
	ok(pl_http_query_get("verbose=%00", "verbose", value, sizeof(value)) < 0, "NUL");
}

static void hosts(void)
{
	static const char *const names[] = { "tele.example" };
	static const struct {
		const char *host;
		bool loopback, wide; /* allowed on a listener of that kind */
	} rows[] = {
		{ "localhost", true, true },
		{ "LOCALHOST:8400", true, true },
		{ "localhost.", true, true },
		{ "127.0.0.1", true, true },
		{ "127.0.0.1:9", true, true },
		{ "[::1]:8400", true, true },
		{ "[::1]", true, true },
		{ "tele.example:8400", true, true },
		{ "Tele.Example", true, true },
		{ "10.1.2.3:8400", false, true },
		{ "[fd00::1]", false, true },
		{ "evil.example", false, false },
		{ "localhost.evil.example", false, false },
		{ "127.0.0.1.evil.example", false, false },
		{ "", false, false },
		{ ":8400", false, false },
		{ "localhost:", true, true },
		{ "localhost:84x", false, false },
		{ "localhost:123456", false, false },
		{ "[::1", false, false },
		{ "[::1]x", false, false },
		{ "localhost ", false, false },
		{ "localhost, evil.example", false, false },
	};
	struct pl_http_hosts loop = { .names = names, .n = 1 }, wide = loop;

	eq(pl_parse_addr("127.0.0.1", &loop.listen), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ok(pl_http_host_allowed(rows[i].host, &loop) == rows[i].loopback,
			"loopback: \"%s\"", rows[i].host);
		ok(pl_http_host_allowed(rows[i].host, &wide) == rows[i].wide, "wide: \"%s\"",
			rows[i].host);
	}
}

static void accepts(void)
{
	static const struct {
		const char *accept;
		bool gzip;
	} codings[] = {
		{ NULL, false },
		{ "", false },
		{ "gzip", true },
		{ "deflate, gzip;q=0.5", true },
		{ "gzip;q=0", false },
		{ "gzip;q=0, *", false },
		{ "*", true },
		{ "*;q=0", false },
		{ "br, zstd", false },
		{ "gzipped", false },
	};

	for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++)
		ok(pl_http_wants_gzip(codings[i].accept) == codings[i].gzip, "coding: %s",
			codings[i].accept == NULL ? "(none)" : codings[i].accept);
}

int main(void)
{
	targets();
	queries();
	hosts();
	accepts();
	return pl_test_done();
}
