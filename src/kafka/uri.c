/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the URI of a topic of Kafka and refuses values that no broker would accept. */
#include "kafka/uri.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

/* Decodes percent escapes in place. */
static int decode(char *text, const char *name, struct pl_diag *diag)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; from++) {
		int byte;

		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		byte = pl_parse_percent(from);
		if (byte <= 0)
			return pl_diag_fail(diag, -EINVAL,
				"value of '%s' in the URI: behind '%%' stand two hexadecimal "
				"digits other than 00; '%%' itself is %%25",
				name);
		*to++ = (char)byte;
		from += 2;
	}
	*to = '\0';
	return 0;
}

static bool host_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '-' || c == '.' || c == '_';
}

static int check_port(const char *host, const char *port, struct pl_diag *diag)
{
	bool digits = *port != '\0';
	uint64_t n;

	for (const char *c = port; *c != '\0'; c++)
		digits = digits && *c >= '0' && *c <= '9';
	if (digits && pl_parse_u64(port, &n) == 0 && n >= 1 && n <= 65535)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "port '%s' of broker '%s': not a number from 1 to 65535",
		port, host);
}

/* One "HOST[:PORT]"; an IPv6 address stands in brackets. */
static int check_broker(char *broker, struct pl_diag *diag)
{
	char *end = broker;

	if (*broker == '\0')
		return pl_diag_fail(diag, -EINVAL,
			"a broker's name is empty: kafka://HOST[:PORT][,HOST[:PORT]]/TOPIC");
	if (*broker == '[') {
		struct pl_addr addr;
		char *close = strchr(broker, ']');
		int bad;

		if (close == NULL)
			return pl_diag_fail(diag, -EINVAL,
				"broker '%s': ']' is missing behind the IPv6 address", broker);
		*close = '\0';
		bad = strchr(broker, ':') == NULL || pl_parse_addr(broker + 1, &addr) < 0;
		*close = ']';
		if (bad)
			return pl_diag_fail(diag, -EINVAL,
				"broker '%s': not an IPv6 address in brackets", broker);
		end = close + 1;
	} else {
		while (host_char(*end))
			end++;
	}
	if (*end == '\0')
		return 0;
	if (*broker != '[' && *end == ':' && strchr(end + 1, ':') != NULL)
		return pl_diag_fail(diag, -EINVAL,
			"broker '%s': an IPv6 address stands in brackets, [%s]", broker, broker);
	if (*end != ':' || end == broker)
		return pl_diag_fail(diag, -EINVAL, "broker '%s': not a name or address", broker);
	return check_port(broker, end + 1, diag);
}

static int check_brokers(char *brokers, struct pl_diag *diag)
{
	char *next;

	for (char *broker = brokers; broker != NULL; broker = next) {
		char *comma = strchr(broker, ',');
		int r;

		next = comma == NULL ? NULL : comma + 1;
		if (comma != NULL)
			*comma = '\0';
		r = check_broker(broker, diag);
		if (r < 0)
			return r;
		if (comma != NULL)
			*comma = ',';
	}
	return 0;
}

/* Kafka's rules for the names of topics. */
static int check_topic(const char *topic, struct pl_diag *diag)
{
	if (*topic == '\0')
		return pl_diag_fail(
			diag, -EINVAL, "the topic is missing: kafka://HOST[:PORT]/TOPIC");
	if (strlen(topic) > PL_KAFKA_TOPIC_MAX)
		return pl_diag_fail(diag, -EINVAL, "the topic's name has %zu bytes; Kafka takes %d",
			strlen(topic), PL_KAFKA_TOPIC_MAX);
	for (const char *c = topic; *c != '\0'; c++) {
		if (!host_char(*c))
			return pl_diag_fail(diag, -EINVAL,
				"topic '%s': Kafka takes letters, digits, '.', '_' and '-' only",
				topic);
	}
	if (strcmp(topic, ".") == 0 || strcmp(topic, "..") == 0)
		return pl_diag_fail(diag, -EINVAL, "topic '%s': Kafka takes no such name", topic);
	return 0;
}

static int take_records(struct pl_kafka_uri *uri, const char *value, struct pl_diag *diag)
{
	uint64_t n;

	if (pl_parse_u64(value, &n) < 0 || n < 1 || n > PL_KAFKA_RECORDS_MAX)
		return pl_diag_fail(diag, -EINVAL,
			"'records=%s' in the URI: not a number from 1 to %d", value,
			PL_KAFKA_RECORDS_MAX);
	uri->records = (uint32_t)n;
	return 0;
}

static const char *const format_names[] = { [PL_KAFKA_FORMAT_ANY] = "any",
	[PL_KAFKA_FORMAT_ROWBINARY] = "rowbinary",
	[PL_KAFKA_FORMAT_JSON] = "json",
	[PL_KAFKA_FORMAT_PROTOBUF] = "protobuf",
	[PL_KAFKA_FORMAT_GOFLOW2] = "goflow2" };

const char *pl_kafka_format_name(enum pl_kafka_format format)
{
	return format_names[format];
}

static int take_format(struct pl_kafka_uri *uri, const char *value, struct pl_diag *diag)
{
	for (enum pl_kafka_format f = PL_KAFKA_FORMAT_ROWBINARY; f <= PL_KAFKA_FORMAT_GOFLOW2;
		f++) {
		if (strcmp(value, format_names[f]) == 0) {
			uri->format = f;
			return 0;
		}
	}
	return pl_diag_fail(diag, -EINVAL,
		"'format=%s' in the URI: not rowbinary, protobuf, json or goflow2", value);
}

static int take_partition(struct pl_kafka_uri *uri, const char *value, struct pl_diag *diag)
{
	uri->spread = strcmp(value, "spread") == 0;
	if (uri->spread || strcmp(value, "flow") == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "'partition=%s' in the URI: not flow or spread", value);
}

static int take_property(
	struct pl_kafka_uri *uri, const char *name, const char *value, struct pl_diag *diag)
{
	if (uri->n_properties == PL_KAFKA_PROPERTIES_MAX)
		return pl_diag_fail(
			diag, -EINVAL, "more than %d properties", PL_KAFKA_PROPERTIES_MAX);
	uri->properties[uri->n_properties].name = name;
	uri->properties[uri->n_properties].value = value;
	uri->n_properties++;
	return 0;
}

static int take_key(struct pl_kafka_uri *uri, char *key, unsigned int *seen, struct pl_diag *diag)
{
	char *value = strchr(key, '=');
	unsigned int own = 0;
	int r;

	if (value != NULL)
		*value++ = '\0';
	if (*key == '\0' || value == NULL || *value == '\0')
		return pl_diag_fail(diag, -EINVAL, "key '%s' in the URI has no %s: ?KEY=VALUE", key,
			*key == '\0' ? "name" : "value");
	r = decode(value, key, diag);
	if (r < 0)
		return r;
	if (strcmp(key, "records") == 0)
		own = 1;
	else if (strcmp(key, "format") == 0)
		own = 2;
	else if (strcmp(key, "properties") == 0)
		own = 4;
	else if (strcmp(key, "partition") == 0)
		own = 8;
	if ((own & *seen) != 0 || (own == 0 && pl_kafka_uri_property(uri, key) != NULL))
		return pl_diag_fail(diag, -EINVAL, "key '%s' is given twice in the URI", key);
	*seen |= own;
	switch (own) {
	case 1:
		return take_records(uri, value, diag);
	case 2:
		return take_format(uri, value, diag);
	case 4:
		uri->properties_file = value;
		return 0;
	case 8:
		return take_partition(uri, value, diag);
	default:
		return take_property(uri, key, value, diag);
	}
}

static int take_query(struct pl_kafka_uri *uri, char *query, struct pl_diag *diag)
{
	unsigned int seen = 0;
	char *next;

	for (; query != NULL; query = next) {
		int r;

		next = strchr(query, '&');
		if (next != NULL)
			*next++ = '\0';
		r = take_key(uri, query, &seen, diag);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Cuts the list of topics and sorts them: readers of the same topics have to number partitions
 * alike. may_lack: the list may be empty, which is one topic without a name. */
static int take_topics(struct pl_kafka_uri *ret, char *list, bool may_lack, struct pl_diag *diag)
{
	int r = 0;

	ret->n_topics = 0;
	if (may_lack && *list == '\0') {
		ret->topic = ret->topics[ret->n_topics++] = list;
		return 0;
	}
	for (char *name = strsep(&list, ","); r == 0 && name != NULL; name = strsep(&list, ",")) {
		unsigned int at = ret->n_topics;

		r = check_topic(name, diag);
		if (r == 0 && ret->n_topics == PL_KAFKA_TOPICS_MAX)
			return pl_diag_fail(
				diag, -EINVAL, "more than %d topics", PL_KAFKA_TOPICS_MAX);
		while (at > 0 && strcmp(ret->topics[at - 1], name) > 0)
			at--;
		if (r == 0 && at > 0 && strcmp(ret->topics[at - 1], name) == 0)
			return pl_diag_fail(diag, -EINVAL, "topic '%s' is there twice", name);
		if (r < 0)
			return r;
		memmove(ret->topics + at + 1, ret->topics + at,
			(ret->n_topics - at) * sizeof(*ret->topics));
		ret->topics[at] = name;
		ret->n_topics++;
	}
	ret->topic = ret->topics[0];
	return r;
}

static int parse(struct pl_kafka_uri *ret, const char *text, bool may_lack, struct pl_diag *diag)
{
	const size_t scheme = strlen(PL_KAFKA_SCHEME), len = strlen(text);
	char *rest, *query, *slash;
	int r;

	ret->records = PL_KAFKA_RECORDS_DEFAULT;
	ret->format = PL_KAFKA_FORMAT_ANY;
	ret->spread = false;
	ret->n_properties = 0;
	ret->properties_file = NULL;
	if (strncmp(text, PL_KAFKA_SCHEME, scheme) != 0)
		return pl_diag_fail(
			diag, -EINVAL, "'%s' does not begin with " PL_KAFKA_SCHEME, text);
	if (len >= sizeof(ret->text))
		return pl_diag_fail(diag, -EINVAL, "URI of %zu bytes is too long; the limit is %d",
			len, PL_KAFKA_URI_MAX - 1);
	memcpy(ret->text, text, len + 1);
	rest = ret->text + scheme;
	query = strchr(rest, '?');
	if (query != NULL)
		*query++ = '\0';
	slash = strchr(rest, '/');
	if (slash != NULL)
		*slash = '\0';
	r = check_brokers(rest, diag);
	if (r == 0)
		r = take_topics(
			ret, slash != NULL ? slash + 1 : strchr(rest, '\0'), may_lack, diag);
	if (r < 0)
		return r;
	memcpy(ret->brokers, rest, strlen(rest) + 1);
	return take_query(ret, query, diag);
}

void pl_kafka_uri_free(struct pl_kafka_uri *uri)
{
	if (uri != NULL)
		explicit_bzero(uri, sizeof(*uri));
	free(uri);
}

static int parse_one(
	struct pl_kafka_uri *ret, const char *text, bool may_lack, struct pl_diag *diag)
{
	int r = parse(ret, text, may_lack, diag);

	if (r < 0 || ret->n_topics == 1)
		return r;
	return pl_diag_fail(diag, -EINVAL, "%u topics: one is meant here", ret->n_topics);
}

int pl_kafka_uri_parse_topics(struct pl_kafka_uri *ret, const char *text, struct pl_diag *diag)
{
	return parse(ret, text, false, diag);
}

int pl_kafka_uri_parse(struct pl_kafka_uri *ret, const char *text, struct pl_diag *diag)
{
	return parse_one(ret, text, false, diag);
}

int pl_kafka_uri_parse_output(struct pl_kafka_uri *ret, const char *text, struct pl_diag *diag)
{
	return parse_one(ret, text, true, diag);
}

int pl_kafka_uri_name(
	struct pl_kafka_uri *uri, const char *kind, unsigned int version, struct pl_diag *diag)
{
	if (uri->topic[0] != '\0')
		return 0;
	if (uri->format > PL_KAFKA_FORMAT_ROWBINARY)
		return pl_diag_fail(diag, -EINVAL,
			"format=%s in the URI: the topic is missing: kafka://HOST[:PORT]/TOPIC",
			pl_kafka_format_name(uri->format));
	snprintf(uri->made, sizeof(uri->made), "tm.%s.v%u", kind, version);
	uri->topic = uri->topics[0] = uri->made;
	return 0;
}

void pl_kafka_uri_oldest(struct pl_kafka_uri *uri)
{
	if (pl_kafka_uri_property(uri, "auto.offset.reset") != NULL ||
		uri->n_properties == PL_KAFKA_PROPERTIES_MAX)
		return;
	uri->properties[uri->n_properties].name = "auto.offset.reset";
	uri->properties[uri->n_properties++].value = "earliest";
}

const char *pl_kafka_uri_property(const struct pl_kafka_uri *uri, const char *name)
{
	for (unsigned int i = 0; i < uri->n_properties; i++) {
		if (strcmp(uri->properties[i].name, name) == 0)
			return uri->properties[i].value;
	}
	return NULL;
}

const char *pl_kafka_uri_take(struct pl_kafka_uri *uri, const char *key)
{
	for (unsigned int i = 0; i < uri->n_properties; i++) {
		const char *value = uri->properties[i].value;

		if (strcmp(uri->properties[i].name, key) != 0)
			continue;
		uri->properties[i] = uri->properties[--uri->n_properties];
		return value;
	}
	return NULL;
}
