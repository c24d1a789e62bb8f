/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/num.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "base/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UNTOUCHED    0xdeadu

struct row {
	const char *text;
	int error;
	uint64_t v;
};

static const struct row u64_rows[] = {
	{ "0", 0, 0 },
	{ "007", 0, 7 },
	{ "18446744073709551615", 0, UINT64_MAX },
	{ "0xffffffffffffffff", 0, UINT64_MAX },
	{ "0xAb", 0, 0xab },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "99999999999999999999999", -ERANGE, 0 },
	{ "0x10000000000000000", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "0x", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "+1", -EINVAL, 0 },
	{ " 1", -EINVAL, 0 },
	{ "1 ", -EINVAL, 0 },
	{ "1a", -EINVAL, 0 },
	{ "0xg", -EINVAL, 0 },
	{ "1e3", -EINVAL, 0 },
	{ "99999999999999999999999x", -EINVAL, 0 },
};

static const struct row size_rows[] = {
	{ "0", 0, 0 },
	{ "4096", 0, 4096 },
	{ "4096B", 0, 4096 },
	{ "64KiB", 0, 65536 },
	{ "1.5KiB", 0, 1536 },
	{ "1MiB", 0, 1048576 },
	{ "2GiB", 0, 2147483648u },
	{ "1TiB", 0, 1099511627776u },
	{ "1kB", 0, 1000 },
	{ "1MB", 0, 1000000 },
	{ "0.001MB", 0, 1000 },
	{ "16777216TiB", -ERANGE, 0 },
	{ "16777215TiB", 0, 18446742974197923840u },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "0.5", -EINVAL, 0 },
	{ "0.3KiB", -EINVAL, 0 },
	{ "1.00000000000000000000000001MiB", -EINVAL, 0 },
	{ "1.50000000000000000000000000MiB", 0, 1572864 },
	{ "1K", -EINVAL, 0 },
	{ "1kb", -EINVAL, 0 },
	{ "1 KiB", -EINVAL, 0 },
	{ "KiB", -EINVAL, 0 },
	{ ".5KiB", -EINVAL, 0 },
	{ "1.KiB", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "", -EINVAL, 0 },
	{ "1e3", -EINVAL, 0 },
};

static const struct row duration_rows[] = {
	{ "0", 0, 0 },
	{ "0s", 0, 0 },
	{ "30ns", 0, 30 },
	{ "250us", 0, 250000 },
	{ "100ms", 0, 100000000 },
	{ "1.5s", 0, 1500000000 },
	{ "0.000000001s", 0, 1 },
	{ "2m", 0, 120000000000 },
	{ "1h", 0, 3600000000000 },
	{ "7d", 0, 604800000000000 },
	{ "18446744073709551615ns", 0, UINT64_MAX },
	{ "18446744074s", -ERANGE, 0 },
	{ "1", -EINVAL, 0 },
	{ "00", -EINVAL, 0 },
	{ "1.5ns", -EINVAL, 0 },
	{ "1sec", -EINVAL, 0 },
	{ "1h30m", -EINVAL, 0 },
	{ "s", -EINVAL, 0 },
	{ "-1s", -EINVAL, 0 },
	{ "1 s", -EINVAL, 0 },
	{ "", -EINVAL, 0 },
};

static void check_rows(
	const char *what, int (*parse)(const char *, uint64_t *), const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = UNTOUCHED;

		eq(parse(rows[i].text, &v), rows[i].error, "%s \"%s\"", what, rows[i].text);
		eq(v, rows[i].error < 0 ? UNTOUCHED : rows[i].v, "%s \"%s\" value", what,
			rows[i].text);
	}
}

static void check_real(const char *what, int (*parse)(const char *, double *), const char *text,
	int error, double want)
{
	double v = -77;

	eq(parse(text, &v), error, "%s \"%s\"", what, text);
	ok(v == (error < 0 ? -77 : want), "%s \"%s\" value %g", what, text, v);
}

static void test_reals(void)
{
	static const struct {
		const char *text;
		int error;
		double v;
	} doubles[] = {
		{ "0", 0, 0 },
		{ "-1.5", 0, -1.5 },
		{ "+2", 0, 2 },
		{ ".5", 0, 0.5 },
		{ "5.", 0, 5 },
		{ "1e3", 0, 1000 },
		{ "1E-3", 0, 0.001 },
		{ "1e400", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ ".", -EINVAL, 0 },
		{ "-", -EINVAL, 0 },
		{ "e3", -EINVAL, 0 },
		{ "1e", -EINVAL, 0 },
		{ "1,5", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
		{ "inf", -EINVAL, 0 },
		{ "infinity", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "--1", -EINVAL, 0 },
	}, rates[] = {
		{ "1000", 0, 1000 },
		{ "10k", 0, 10000 },
		{ "2.5M", 0, 2500000 },
		{ "1G", 0, 1e9 },
		{ "10k/s", 0, 10000 },
		{ "5/s", 0, 5 },
		{ "0", 0, 0 },
		{ "1e3k", 0, 1e6 },
		{ "1e308k", -ERANGE, 0 },
		{ "-1", -EINVAL, 0 },
		{ "10K", -EINVAL, 0 },
		{ "10kk", -EINVAL, 0 },
		{ "10/", -EINVAL, 0 },
		{ "10/sec", -EINVAL, 0 },
		{ "k", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "0x1k", -EINVAL, 0 },
	};

	for (size_t i = 0; i < COUNT(doubles); i++)
		check_real(
			"double", pl_parse_double, doubles[i].text, doubles[i].error, doubles[i].v);
	for (size_t i = 0; i < COUNT(rates); i++)
		check_real("rate", pl_parse_rate, rates[i].text, rates[i].error, rates[i].v);
}

static void test_bool(void)
{
	bool v = false;

	ok(pl_parse_bool("yes", &v) == 0 && v);
	ok(pl_parse_bool("off", &v) == 0 && !v);
	ok(pl_parse_bool("true", &v) == 0 && v);
	eq(pl_parse_bool("True", &v), -EINVAL);
	eq(pl_parse_bool("1", &v), -EINVAL);
	eq(pl_parse_bool("", &v), -EINVAL);
	ok(v, "left alone");
}

static void test_addr(void)
{
	static const struct {
		const char *in, *out; /* out NULL: refused */
	} rows[] = {
		{ "10.0.0.1", "10.0.0.1" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "fd00::1", "fd00::1" },
		{ "[fd00::1]", "fd00::1" },
		{ "::", "::" },
		{ "::1", "::1" },
		{ "1::", "1::" },
		{ "::ffff:10.1.2.3", "10.1.2.3" },
		{ "2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
		{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
		{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },
		{ "0:0:0:0:0:0:0a0b:0c0d", "::a0b:c0d" },
		{ "0001:0203:0405:0607:0809:0a0b:0c0d:0000", "1:203:405:607:809:a0b:c0d:0" },
		{ "", NULL },
		{ "10.0.0", NULL },
		{ "10.0.0.256", NULL },
		{ "010.0.0.1", NULL },
		{ "10.0.0.1 ", NULL },
		{ "[10.0.0.1]", NULL },
		{ "[fd00::1", NULL },
		{ "fd00::1]", NULL },
		{ "[]", NULL },
		{ "[", NULL },
		{ "fd00::1%eth0", NULL },
		{ "1::2::3", NULL },
		{ "localhost", NULL },
		{ "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd", NULL },
	};
	struct pl_rng rng;
	uint64_t seed = 99;
	bool good = true;
	char text[PL_ADDR_TEXT_MAX];
	struct pl_addr addr, back;

	for (size_t i = 0; i < COUNT(rows); i++) {
		if (rows[i].out == NULL) {
			eq(pl_parse_addr(rows[i].in, &addr), -EINVAL, "address \"%s\"", rows[i].in);
			continue;
		}
		eq(pl_parse_addr(rows[i].in, &addr), 0, "address \"%s\"", rows[i].in);
		eq(pl_format_addr(text, &addr), strlen(rows[i].out));
		streq(text, rows[i].out);
	}
	pl_rng_seed(&rng, seed);
	for (int i = 0; i < 100000 && good; i++) {
		char want[INET6_ADDRSTRLEN];
		uint64_t zero = pl_rng_u64(&rng);

		zero &= pl_rng_u64(&rng); /* a quarter of the bits */
		for (int b = 0; b < 16; b++)
			addr.b[b] = zero >> (b / 2) & 1 ? (uint8_t)pl_rng_u64(&rng) : 0;
		pl_format_addr(text, &addr);
		good = pl_parse_addr(text, &back) == 0 && pl_addr_equal(&addr, &back);
		/* The C library writes ::a.b.c.d where we write hexadecimal, else the same. */
		inet_ntop(AF_INET6, addr.b, want, sizeof(want));
		if (strchr(want, '.') == NULL)
			good = good && strcmp(text, want) == 0;
	}
	ok(good, "addresses as the C library writes them (seed %" PRIu64 ": %s)", seed, text);
}

static void test_prefix_endpoint(void)
{
	static const struct {
		const char *text;
		int error;
		unsigned int number;
	} prefixes[] = {
		{ "10.0.0.0/8", 0, 104 },
		{ "10.0.0.1", 0, 128 },
		{ "0.0.0.0/0", 0, 96 },
		{ "::/0", 0, 0 },
		{ "fd00::/64", 0, 64 },
		{ "[fd00::]/64", 0, 64 },
		{ "::ffff:10.0.0.0/104", 0, 104 },
		{ "10.0.0.0/33", -ERANGE, 0 },
		{ "fd00::/129", -ERANGE, 0 },
		{ "10.0.0.0/", -EINVAL, 0 },
		{ "10.0.0.0/08", -EINVAL, 0 },
		{ "10.0.0.0/-1", -EINVAL, 0 },
		{ "10.0.0.0/0x8", -EINVAL, 0 },
		{ "10.0.0.0/8/8", -EINVAL, 0 },
		{ "/8", -EINVAL, 0 },
		{ "10/8", -EINVAL, 0 },
	}, endpoints[] = {
		{ "10.0.0.1:80", 0, 80 },
		{ ":32766", 0, 32766 },
		{ "*:32766", 0, 32766 },
		{ "**:32766", -EINVAL, 0 },
		{ "*", -EINVAL, 0 },
		{ "[fd00::1]:65535", 0, 65535 },
		{ "[::]:0", 0, 0 },
		{ "10.0.0.1:65536", -ERANGE, 0 },
		{ "10.0.0.1", -EINVAL, 0 },
		{ "10.0.0.1:", -EINVAL, 0 },
		{ "10.0.0.1:080", -EINVAL, 0 },
		{ "10.0.0.1:0x50", -EINVAL, 0 },
		{ "fd00::1:80", -EINVAL, 0 },
		{ "[fd00::1]80", -EINVAL, 0 },
		{ "[fd00::1]", -EINVAL, 0 },
		{ "host:80", -EINVAL, 0 },
		{ "10.0.0.1:80 ", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ ":", -EINVAL, 0 },
	};

	for (size_t i = 0; i < COUNT(prefixes); i++) {
		struct pl_addr addr = { { 1 } };
		unsigned int bits = UNTOUCHED;

		eq(pl_parse_prefix(prefixes[i].text, &addr, &bits), prefixes[i].error,
			"prefix \"%s\"", prefixes[i].text);
		eq(bits, prefixes[i].error < 0 ? UNTOUCHED : prefixes[i].number,
			"prefix \"%s\" bits", prefixes[i].text);
	}
	for (size_t i = 0; i < COUNT(endpoints); i++) {
		struct pl_addr addr = { { 1 } };
		uint16_t port = UNTOUCHED;

		eq(pl_parse_endpoint(endpoints[i].text, &addr, &port), endpoints[i].error,
			"endpoint \"%s\"", endpoints[i].text);
		eq(port, endpoints[i].error < 0 ? UNTOUCHED : endpoints[i].number,
			"endpoint \"%s\" port", endpoints[i].text);
		if (endpoints[i].text[0] == ':' && endpoints[i].error == 0)
			ok(pl_addr_is_unspecified(&addr), "no host is the unspecified address");
	}
}

static void test_format(void)
{
	static const struct {
		uint64_t ns;
		const char *text, *exact;
	} durations[] = {
		{ 0, "0s", "0s" },
		{ 1, "1ns", "1ns" },
		{ 999, "999ns", "999ns" },
		{ 1000, "1.00us", "1us" },
		{ 1500, "1.50us", "1500ns" },
		{ 99949, "99.9us", "99949ns" },
		{ 99950, "100us", "99950ns" },
		{ 999499, "999us", "999499ns" },
		{ 999500, "1.00ms", "999500ns" },
		{ 2345678, "2.35ms", "2345678ns" },
		{ 999500000, "1.00s", "999500us" },
		{ 12300000000, "12.3s", "12300ms" },
		{ 59949999999, "59.9s", "59949999999ns" },
		{ 59950000000, "1m00s", "59950ms" },
		{ 90000000000, "1m30s", "90s" },
		{ 3599500000000, "1h00m", "3599500ms" },
		{ 7500000000000, "2h05m", "125m" },
		{ 86370000000000, "1d00h", "86370s" },
		{ 86400000000000, "1d00h", "1d" },
		{ 273600000000000, "3d04h", "76h" },
		{ UINT64_MAX, "213504d00h", "18446744073709551615ns" },
	};
	static const struct {
		double v;
		const char *text;
	} counts[] = {
		{ 0, "0" },
		{ 842, "842" },
		{ 999, "999" },
		{ 999.5, "1.00k" },
		{ 1.5, "1.50" },
		{ 1000, "1.00k" },
		{ 48211, "48.2k" },
		{ 999949, "1.00M" },
		{ 3100000, "3.10M" },
		{ -3100000, "-3.10M" },
		{ 1e18, "1.00E" },
		{ 1e30, "1e+30" },
		{ NAN, "NaN" },
		{ -INFINITY, "-Inf" },
	};
	char text[PL_EXACT_TEXT_MAX], small[4];
	uint64_t back, seed = 4;
	struct pl_rng rng;
	bool good = true;

	for (size_t i = 0; i < COUNT(durations); i++) {
		pl_format_duration(text, sizeof(text), durations[i].ns);
		streq(text, durations[i].text);
		pl_format_duration_exact(text, durations[i].ns);
		streq(text, durations[i].exact);
	}
	for (size_t i = 0; i < COUNT(counts); i++) {
		pl_format_count(text, sizeof(text), counts[i].v);
		streq(text, counts[i].text);
	}
	eq(pl_format_count(small, sizeof(small), 48211), 3, "cut to the room there is");
	streq(small, "48.");
	pl_format_size_exact(text, 65536);
	streq(text, "64KiB");
	pl_format_size_exact(text, 1000);
	streq(text, "1000");
	pl_rng_seed(&rng, seed);
	for (int i = 0; i < 10000 && good; i++) {
		uint64_t v = (pl_rng_u64(&rng) >> pl_rng_below(&rng, 64))
			     << (i % 2 ? pl_rng_below(&rng, 41) : 0);

		pl_format_size_exact(text, v);
		good = pl_parse_size(text, &back) == 0 && back == v;
		v = i % 2 ? v % 1000 * 60000000000 : v;
		pl_format_duration_exact(text, v);
		good = good && pl_parse_duration(text, &back) == 0 && back == v;
	}
	ok(good, "exact forms read back (seed %" PRIu64 ": %s)", seed, text);
}

static void test_nearest(void)
{
	static const char *const words[] = { "stats", "where", "output", "count", "sources" };

	streq(pl_nearest("statz", words, COUNT(words)), "stats");
	streq(pl_nearest("sorces", words, COUNT(words)), "sources");
	streq(pl_nearest("ouptut", words, COUNT(words)), "output");
	streq(pl_nearest("STATS", words, COUNT(words)), "stats");
	streq(pl_nearest("stat", words, COUNT(words)), "stats");
	streq(pl_nearest("sta", words, COUNT(words)), "stats", "its beginning");
	ok(pl_nearest("asb", (const char *const[]){ "asc" }, 1) != NULL, "a third differs");
	ok(pl_nearest("abc", (const char *const[]){ "src", "dst" }, 2) == NULL, "two of three do");
	ok(pl_nearest("dst", (const char *const[]){ "NOT" }, 1) == NULL);
	ok(pl_nearest("ab", (const char *const[]){ "as" }, 1) == NULL, "one of two does");
	ok(pl_nearest("verbose", words, COUNT(words)) == NULL, "nothing is near");
	ok(pl_nearest("", words, COUNT(words)) == NULL, "an empty word has no neighbour");
	ok(pl_nearest("x", words, COUNT(words)) == NULL, "nor has one letter");
	ok(pl_nearest("stats", words, 0) == NULL, "no words");
}

static void test_time(void)
{
	const uint64_t now = UINT64_C(1763774000) * 1000000000u;
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "10m", UINT64_C(1763773400) * 1000000000u },
		{ "0", UINT64_C(1763774000) * 1000000000u },
		{ "30000d", 0 }, /* before there was time */
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2025-11-22T01:13:20Z", UINT64_C(1763774000) * 1000000000u },
		{ "2025-11-22 01:13:20", UINT64_C(1763774000) * 1000000000u },
		{ "2025-11-22T01:13:20.5Z", UINT64_C(1763774000500000000) },
		{ "2025-11-22T01:13:20.000000001", UINT64_C(1763774000000000001) },
		{ "2025-11-22", UINT64_C(1763769600) * 1000000000u },
	};
	static const char *const bad[] = { "", "now", "10", "2025", "2025-11", "2025-13-01",
		"2025-11-22T", "2025-11-22T25:00:00Z", "2025-11-22T01:13Z", "2025-11-22T01:13:20.Z",
		"2025-11-22T01:13:20Zx", "2025-11-22T01:13:20+01:00", " 2025-11-22", "1969-01-01",
		"9999-01-01T00:00:00Z", "-5m" };
	uint64_t ns;

	for (size_t i = 0; i < COUNT(good); i++) {
		ns = 1;
		ok(pl_parse_time(good[i].text, now, &ns) == 0 && ns == good[i].ns, "time '%s'",
			good[i].text);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		ns = 7;
		ok(pl_parse_time(bad[i], now, &ns) < 0 && ns == 7, "no time: '%s'", bad[i]);
	}
}

int main(void)
{
	test_time();
	check_rows("number", pl_parse_u64, u64_rows, COUNT(u64_rows));
	check_rows("size", pl_parse_size, size_rows, COUNT(size_rows));
	check_rows("duration", pl_parse_duration, duration_rows, COUNT(duration_rows));
	test_reals();
	test_bool();
	test_addr();
	test_prefix_endpoint();
	test_format();
	test_nearest();
	return pl_test_done();
}
