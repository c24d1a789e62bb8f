/* SPDX-License-Identifier: BSD-2-Clause */
/* URIs of topics: parts of good ones, and for each wrong one the part that its text names. */
#include "kafka/uri.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"

static struct pl_kafka_uri uri;
static struct pl_diag diag;
static char path[64]; /* a file of properties */

static void test_good(void)
{
	static const struct {
		const char *text, *brokers, *topic;
		uint32_t records;
		enum pl_kafka_format format;
		unsigned int n;
	} rows[] = {
		{ "kafka://h/t", "h", "t", 1024, PL_KAFKA_FORMAT_ANY, 0 },
		{ "kafka://h:9092/tm.pkt64", "h:9092", "tm.pkt64", 1024, PL_KAFKA_FORMAT_ANY, 0 },
		{ "kafka://a:1,b-c.d_e:65535,10.0.0.1/T_-.9", "a:1,b-c.d_e:65535,10.0.0.1", "T_-.9",
			1024, PL_KAFKA_FORMAT_ANY, 0 },
		{ "kafka://[fd00::1]:9092,[::1]/t", "[fd00::1]:9092,[::1]", "t", 1024,
			PL_KAFKA_FORMAT_ANY, 0 },
		{ "kafka://h/t?records=4096&format=rowbinary&linger.ms=5", "h", "t", 4096,
			PL_KAFKA_FORMAT_ROWBINARY, 1 },
		{ "kafka://h/t?format=json&records=1", "h", "t", 1, PL_KAFKA_FORMAT_JSON, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		diag.text[0] = '\0';
		eq(pl_kafka_uri_parse(&uri, rows[i].text, &diag), 0, "%s %s", rows[i].text,
			diag.text);
		streq(uri.brokers, rows[i].brokers, "its brokers");
		streq(uri.topic, rows[i].topic, "its topic");
		eq(uri.records, rows[i].records, "its records");
		eq(uri.format, rows[i].format, "its format");
		eq(uri.n_properties, rows[i].n, "its properties");
	}
}

static void test_values(void)
{
	eq(pl_kafka_uri_parse(
		   &uri, "kafka://h/t?sasl.password=a%26b%3D%25c+d=e/f?g%c3%a4&x.y=1", NULL),
		0, "values of many characters");
	streq(pl_kafka_uri_property(&uri, "sasl.password"), "a&b=%c+d=e/f?g\xc3\xa4",
		"percent-decoded, once");
	streq(pl_kafka_uri_property(&uri, "x.y"), "1", "the next one");
	ok(pl_kafka_uri_property(&uri, "x") == NULL, "a name that is not there");
}

static void test_wrong(void)
{
	static const struct {
		const char *text, *names;
	} rows[] = {
		{ "", "kafka://" },
		{ "kafka:h/t", "kafka://" },
		{ "KAFKA://h/t", "kafka://" },
		{ "kafka://", "broker's name is empty" },
		{ "kafka:///t", "broker's name is empty" },
		{ "kafka://h", "topic is missing" },
		{ "kafka://h/", "topic is missing" },
		{ "kafka://h?records=1", "topic is missing" },
		{ "kafka://h,/t", "broker's name is empty" },
		{ "kafka://,h/t", "broker's name is empty" },
		{ "kafka://h:/t", "port ''" },
		{ "kafka://h:0/t", "port '0'" },
		{ "kafka://h:65536/t", "port '65536'" },
		{ "kafka://h:0x10/t", "port '0x10'" },
		{ "kafka://h:99999999999999999999/t", "port '9999" },
		{ "kafka://:9092/t", "not a name" },
		{ "kafka://user@h/t", "'user@h'" },
		{ "kafka://h h/t", "'h h'" },
		{ "kafka://fd00::1/t", "brackets" },
		{ "kafka://::1/t", "brackets" },
		{ "kafka://[fd00::1/t", "']' is missing" },
		{ "kafka://[fd00::g]/t", "not an IPv6 address" },
		{ "kafka://[10.0.0.1]/t", "not an IPv6 address" },
		{ "kafka://[]/t", "not an IPv6 address" },
		{ "kafka://[::1]9092/t", "'[::1]9092'" },
		{ "kafka://[::1]:x/t", "port 'x'" },
		{ "kafka://h/a/b", "'a/b'" },
		{ "kafka://h/a b", "'a b'" },
		{ "kafka://h/.", "'.'" },
		{ "kafka://h/..", "'..'" },
		{ "kafka://h/t?", "no name" },
		{ "kafka://h/t?&", "no name" },
		{ "kafka://h/t?records", "'records' in the URI has no value" },
		{ "kafka://h/t?records=", "'records' in the URI has no value" },
		{ "kafka://h/t?=5", "no name" },
		{ "kafka://h/t?records=0", "1 to 4096" },
		{ "kafka://h/t?records=4097", "1 to 4096" },
		{ "kafka://h/t?records=many", "records=many" },
		{ "kafka://h/t?records=-1", "records=-1" },
		{ "kafka://h/t?format=avro", "format=avro" },
		{ "kafka://h/t?partition=3", "not flow or spread" },
		{ "kafka://h/t?partition=flow&partition=spread", "given twice" },
		{ "kafka://h/t?format=JSON", "format=JSON" },
		{ "kafka://h/t?records=1&records=2", "'records' is given twice" },
		{ "kafka://h/t?format=json&format=json", "'format' is given twice" },
		{ "kafka://h/t?a.b=1&a.b=1", "'a.b' is given twice" },
		{ "kafka://h/t?a=%", "'a'" },
		{ "kafka://h/t?a=%4", "'a'" },
		{ "kafka://h/t?a=%4g", "'a'" },
		{ "kafka://h/t?a=%00", "'a'" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		diag.text[0] = '\0';
		eq(pl_kafka_uri_parse(&uri, rows[i].text, &diag), -EINVAL, "'%s' is refused",
			rows[i].text);
		ok(strstr(diag.text, rows[i].names) != NULL, "and its text '%s' has \"%s\"",
			diag.text, rows[i].names);
	}
}

/* Outputs of records name a topic that the URI does not. */
static void test_unnamed(void)
{
	static const struct {
		const char *text, *topic;
	} rows[] = {
		{ "kafka://h", "tm.pkt64.v1" },
		{ "kafka://h:9092,[::1]/?records=1", "tm.pkt64.v1" },
		{ "kafka://h?format=rowbinary", "tm.pkt64.v1" },
		{ "kafka://h/t", "t" },
		{ "kafka://h/t?format=json", "t" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		eq(pl_kafka_uri_parse_output(&uri, rows[i].text, &diag), 0, "%s", rows[i].text);
		eq(pl_kafka_uri_name(&uri, "pkt64", 1, &diag), 0, "gets a name");
		streq(uri.topic, rows[i].topic, "its topic");
		streq(uri.topics[0], rows[i].topic, "and its only one");
		eq(uri.n_topics, 1);
	}
	eq(pl_kafka_uri_parse_output(&uri, "kafka://h?format=protobuf", &diag), 0);
	eq(pl_kafka_uri_name(&uri, "pkt64", 1, &diag), -EINVAL, "other formats need a topic");
	ok(strstr(diag.text, "format=protobuf in the URI: the topic is missing") != NULL,
		"which is told: %s", diag.text);
	eq(pl_kafka_uri_parse_output(&uri, "kafka://h/a,b", &diag), -EINVAL, "two topics");
	eq(pl_kafka_uri_parse_output(&uri, "kafka://h/,b", &diag), -EINVAL, "one without a name");
}

static void test_limits(void)
{
	static char text[3 * PL_KAFKA_URI_MAX];
	size_t n;

	n = (size_t)sprintf(text, "kafka://h/");
	memset(text + n, 't', PL_KAFKA_TOPIC_MAX);
	eq(pl_kafka_uri_parse(&uri, text, NULL), 0, "the longest topic");
	text[n + PL_KAFKA_TOPIC_MAX] = 't';
	eq(pl_kafka_uri_parse(&uri, text, NULL), -EINVAL, "one byte more");
	n = (size_t)sprintf(text, "kafka://h/t?a=");
	memset(text + n, 'x', PL_KAFKA_URI_MAX - 1 - n);
	text[PL_KAFKA_URI_MAX - 1] = '\0';
	eq(pl_kafka_uri_parse(&uri, text, NULL), 0, "the longest URI");
	text[PL_KAFKA_URI_MAX - 1] = 'x';
	text[PL_KAFKA_URI_MAX] = '\0';
	eq(pl_kafka_uri_parse(&uri, text, NULL), -EINVAL, "one byte more");
	n = (size_t)sprintf(text, "kafka://h/t?");
	for (int i = 0; i < PL_KAFKA_PROPERTIES_MAX; i++)
		n += (size_t)sprintf(text + n, "%sp%d=1", i > 0 ? "&" : "", i);
	eq(pl_kafka_uri_parse(&uri, text, NULL), 0, "as many properties as there may be");
	sprintf(text + n, "&more=1");
	eq(pl_kafka_uri_parse(&uri, text, &diag), -EINVAL, "one more: %s", diag.text);
}

static void put_file(const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
	chmod(path, mode);
}

static int read_file(const char *text)
{
	char full[256];

	put_file(text, 0600);
	snprintf(full, sizeof(full), "kafka://h/t?client.id=uri&properties=%s", path);
	memset(&diag, 0, sizeof(diag));
	eq(pl_kafka_uri_parse(&uri, full, &diag), 0, "a URI with a file");
	return pl_kafka_uri_read_properties(&uri, &diag);
}

static void test_file(void)
{
	static const struct {
		const char *text, *names;
		unsigned int line;
	} wrong[] = {
		{ "a=1\nsasl.password\n", "NAME=VALUE", 2 },
		{ "a=1\n\n=x", "no name", 3 },
		{ "a = ", "'a' has no value", 1 },
		{ "a=1\nb=2\na=3", "'a' is given twice", 3 },
	};
	static char much[PL_KAFKA_FILE_MAX + 8];

	snprintf(path, sizeof(path), "/tmp/kafka-properties-%d", getpid());
	eq(read_file("# a comment\n\n  sasl.password = p=w#d \r\nclient.id=file\ngroup.id=g"), 0);
	ok(strcmp(pl_kafka_uri_property(&uri, "sasl.password"), "p=w#d") == 0, "a value");
	ok(strcmp(pl_kafka_uri_property(&uri, "client.id"), "uri") == 0, "the URI goes first");
	ok(strcmp(pl_kafka_uri_property(&uri, "group.id"), "g") == 0, "a line without an end");
	ok(pl_kafka_uri_property(&uri, "properties") == NULL, "the file is no property");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		eq(read_file(wrong[i].text), -EINVAL, "refused");
		ok(strstr(diag.text, wrong[i].names) != NULL && diag.line == wrong[i].line,
			"line %u: %s", diag.line, diag.text);
		ok(strcmp(diag.file, path) == 0, "of that file");
	}
	memset(much, '#', sizeof(much) - 1);
	eq(read_file(much), -EFBIG, "too long: %s", diag.text);
	put_file("a=1", 0666);
	eq(pl_kafka_uri_read_properties(&uri, &diag), -EKEYREJECTED, "%s", diag.text);
	unlink(path);
	eq(pl_kafka_uri_read_properties(&uri, &diag), -ENOENT, "%s", diag.text);
}

/* Several topics, which are of a reader, in the order of their names. */
static void test_topics(void)
{
	static const char *const bad[] = { "kafka://h/a,", "kafka://h/,a", "kafka://h/a,,b",
		"kafka://h/a,b,a", "kafka://h/a,b c",
		"kafka://h/a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q" };
	static struct pl_kafka_uri u;

	eq(pl_kafka_uri_parse_topics(&u, "kafka://h,i/b,c,a?x=1,2", &diag), 0, "%s", diag.text);
	eq(u.n_topics, 3);
	streq(u.topics[0], "a");
	streq(u.topics[1], "b");
	streq(u.topics[2], "c");
	streq(u.topic, "a");
	streq(u.brokers, "h,i");
	eq(u.n_properties, 1);
	ok(pl_kafka_uri_parse(&u, "kafka://h/b,a", &diag) < 0, "where one is meant: %s", diag.text);
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
		ok(pl_kafka_uri_parse_topics(&u, bad[k], &diag) < 0, "%s: %s", bad[k], diag.text);
	eq(pl_kafka_uri_parse_topics(&u, "kafka://h/a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", &diag), 0);
	eq(u.n_topics, PL_KAFKA_TOPICS_MAX);
}

int main(void)
{
	test_file();
	test_good();
	test_values();
	test_wrong();
	test_unnamed();
	test_limits();
	test_topics();
	return pl_test_done();
}
