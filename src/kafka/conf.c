/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes librdkafka's configuration from a URI's properties and our settings. */
#include "kafka/conf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/sandbox.h"

/* Drops librdkafka's log lines: errors come by the error callback, and a library prints nothing. */
static void be_quiet(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk;
	(void)level;
	(void)facility;
	(void)text;
}

static int check_reserved(
	const char *name, const struct pl_kafka_reserved *reserved, struct pl_diag *diag)
{
	for (; reserved->name != NULL; reserved++) {
		if (strcmp(name, reserved->name) == 0)
			return pl_diag_fail(diag, -EINVAL, "property '%s' cannot be set: %s", name,
				reserved->why);
	}
	return 0;
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, struct pl_diag *diag)
{
	char text[256] = "";

	switch (rd_kafka_conf_set(conf, name, value, text, sizeof(text))) {
	case RD_KAFKA_CONF_OK:
		return 0;
	case RD_KAFKA_CONF_UNKNOWN:
		return pl_diag_fail(diag, -ENOENT,
			"'%s' is no key of pathline, and no property of librdkafka %s", name,
			rd_kafka_version_str());
	default:
		/* The value may be a secret, so the message has only the text of librdkafka, which
		 * hides secrets. */
		return pl_diag_fail(diag, -EINVAL, "property '%s': %s", name, text);
	}
}

static int set_all(rd_kafka_conf_t *conf, const struct pl_kafka_uri *uri,
	const struct pl_kafka_setting *settings, const struct pl_kafka_reserved *reserved,
	struct pl_diag *diag)
{
	int r = set(conf, "bootstrap.servers", uri->brokers, diag);

	for (; r == 0 && settings->name != NULL; settings++) {
		r = set(conf, settings->name, settings->value, diag);
		r = r == -ENOENT ? 0 : r; /* an older librdkafka does not know it */
	}
	for (unsigned int i = 0; r == 0 && i < uri->n_properties; i++) {
		r = check_reserved(uri->properties[i].name, reserved, diag);
		if (r == 0)
			r = set(conf, uri->properties[i].name, uri->properties[i].value, diag);
	}
	return r;
}

static bool holds(const rd_kafka_conf_t *conf, const char *name, const char *word)
{
	char text[256] = "";
	size_t size = sizeof(text);

	return rd_kafka_conf_get(conf, name, text, &size) == RD_KAFKA_CONF_OK &&
	       strstr(text, word) != NULL;
}

/* Refuses GSSAPI with kinit under the sandbox. Starting kinit is a refused system call, which ends
 * this process without a message: the C library blocks all signals meanwhile, also that of the
 * refused call. */
static int check_kinit(const rd_kafka_conf_t *conf, struct pl_diag *diag)
{
	char every[32] = "";
	size_t size = sizeof(every);

	if (!pl_sandbox_filters_calls() || !holds(conf, "security.protocol", "sasl") ||
		!holds(conf, "sasl.mechanism", "GSSAPI"))
		return 0;
	(void)rd_kafka_conf_get(conf, "sasl.kerberos.min.time.before.relogin", every, &size);
	if (strcmp(every, "0") == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"property 'sasl.mechanism': GSSAPI (the default) has librdkafka start kinit, for which the sandbox ends this process: set PLAIN, SCRAM-SHA-512 or OAUTHBEARER, or sasl.kerberos.min.time.before.relogin=0, or start with PATHLINE_SANDBOX=no-seccomp");
}

rd_kafka_conf_t *pl_kafka_conf_new(const struct pl_kafka_uri *uri,
	const struct pl_kafka_setting *settings, const struct pl_kafka_reserved *reserved,
	struct pl_diag *diag)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();

	if (set_all(conf, uri, settings, reserved, diag) < 0 || check_kinit(conf, diag) < 0) {
		rd_kafka_conf_destroy(conf);
		return NULL;
	}
	rd_kafka_conf_set_log_cb(conf, be_quiet);
	return conf;
}

static int verdict_of(rd_kafka_resp_err_t err)
{
	switch (err) {
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
		return -ENOENT;
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR__AUTHENTICATION:
	case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
		return -EACCES;
	default:
		return -ETIMEDOUT;
	}
}

/* Asks the brokers once for the topic's metadata. A broker that creates the topic on demand says
 * for a while that there is none. */
static rd_kafka_resp_err_t ask(
	rd_kafka_t *rk, rd_kafka_topic_t *topic, unsigned int wait_ms, unsigned int *ret)
{
	const struct rd_kafka_metadata *meta;
	rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 0, topic, &meta, (int)wait_ms);

	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		return err;
	err = RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
	for (int i = 0; i < meta->topic_cnt; i++) {
		const struct rd_kafka_metadata_topic *t = &meta->topics[i];

		if (strcmp(t->topic, rd_kafka_topic_name(topic)) != 0)
			continue;
		err = t->err;
		*ret = t->partition_cnt > 0 ? (unsigned int)t->partition_cnt : 0;
		if (err == RD_KAFKA_RESP_ERR_NO_ERROR && *ret == 0)
			err = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
	}
	rd_kafka_metadata_destroy(meta);
	return err;
}

int pl_kafka_conf_partitions(rd_kafka_t *rk, rd_kafka_topic_t *topic, const char *brokers,
	unsigned int wait_ms, const struct pl_diag *trouble, unsigned int *ret,
	struct pl_diag *diag)
{
	const uint64_t until = pl_clock_mono_ns() + (uint64_t)wait_ms * 1000000;
	rd_kafka_resp_err_t err, told = RD_KAFKA_RESP_ERR_NO_ERROR;

	for (;;) {
		const uint64_t now = pl_clock_mono_ns();
		const unsigned int left = now < until ? (unsigned int)((until - now) / 1000000) : 0;

		err = ask(rk, topic, left > 0 ? left : 1, ret);
		if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
			return 0;
		/* Keeps a broker's answer instead of a later timeout. */
		if (verdict_of(err) != -ETIMEDOUT || told == RD_KAFKA_RESP_ERR_NO_ERROR)
			told = err;
		if (left == 0 || verdict_of(err) == -EACCES)
			break;
		rd_kafka_poll(rk, left < 50 ? (int)left : 50);
	}
	pl_diag_set(diag, "topic '%s' at %s: %s; asked for %u ms%s%s", rd_kafka_topic_name(topic),
		brokers, rd_kafka_err2str(told), wait_ms, trouble->text[0] != '\0' ? "; " : "",
		trouble->text);
	return verdict_of(told);
}
