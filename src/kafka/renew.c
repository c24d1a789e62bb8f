/* SPDX-License-Identifier: BSD-2-Clause */
/* Watches the files of certificates and keys. */
#include "kafka/renew.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char *const properties[PL_KAFKA_RENEW_FILES] = { "ssl.ca.location",
	"ssl.certificate.location", "ssl.key.location", "ssl.keystore.location",
	"ssl.crl.location" };

/* Checks the file; returns true when it changed since the last check. */
static bool look(struct pl_kafka_renew_file *f)
{
	struct pl_kafka_renew_file now = { .path = f->path };
	struct stat st;
	bool same;

	if (stat(f->path, &st) == 0) {
		now.dev = st.st_dev;
		now.ino = st.st_ino;
		now.size = st.st_size;
		now.changed = st.st_mtim;
	}
	same = now.dev == f->dev && now.ino == f->ino && now.size == f->size &&
	       now.changed.tv_sec == f->changed.tv_sec && now.changed.tv_nsec == f->changed.tv_nsec;
	*f = now;
	return !same;
}

int pl_kafka_renew_init(struct pl_kafka_renew *renew, const rd_kafka_conf_t *conf)
{
	*renew = (struct pl_kafka_renew){ .n = 0 };
	for (unsigned int i = 0; i < PL_KAFKA_RENEW_FILES; i++) {
		struct pl_kafka_renew_file *f = &renew->files[renew->n];
		char path[PATH_MAX] = "";
		size_t size = sizeof(path);

		/* A value that is no path, such as "probe": librdkafka searches the system's
		 * CAs. */
		if (rd_kafka_conf_get(conf, properties[i], path, &size) != RD_KAFKA_CONF_OK ||
			path[0] != '/')
			continue;
		f->path = strdup(path);
		if (f->path == NULL) {
			pl_kafka_renew_done(renew);
			return -ENOMEM;
		}
		(void)look(f);
		renew->n++;
	}
	return 0;
}

void pl_kafka_renew_done(struct pl_kafka_renew *renew)
{
	for (unsigned int i = 0; i < renew->n; i++)
		free(renew->files[i].path);
	renew->n = 0;
}

bool pl_kafka_renew_due(struct pl_kafka_renew *renew, uint64_t now_ns)
{
	if (renew->n == 0 || now_ns - renew->looked_ns < PL_KAFKA_RENEW_LOOK_NS)
		return false;
	renew->looked_ns = now_ns;
	for (unsigned int i = 0; i < renew->n; i++)
		renew->pending |= look(&renew->files[i]);
	return renew->pending;
}
