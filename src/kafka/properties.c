/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a file of librdkafka's properties. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "kafka/uri.h"

static char *trimmed(char *text)
{
	size_t n;

	text += strspn(text, " \t\r");
	n = strlen(text);
	while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL)
		n--;
	text[n] = '\0';
	return text;
}

static int take_line(struct pl_kafka_uri *uri, char *text, unsigned int n_of_uri, unsigned int line,
	struct pl_diag *diag)
{
	char *name = trimmed(text), *value = strchr(name, '=');

	if (*name == '\0' || *name == '#')
		return 0;
	if (value == NULL) {
		pl_diag_at(
			diag, line, 0, "a line is NAME=VALUE, or a comment that begins with '#'");
		return -EINVAL;
	}
	*value++ = '\0';
	name = trimmed(name);
	value = trimmed(value);
	if (*name == '\0' || *value == '\0') {
		pl_diag_at(diag, line, 0, "property '%s' has no %s", name,
			*name == '\0' ? "name" : "value");
		return -EINVAL;
	}
	for (unsigned int i = 0; i < uri->n_properties; i++) {
		if (strcmp(uri->properties[i].name, name) != 0)
			continue;
		if (i < n_of_uri)
			return 0;
		pl_diag_at(diag, line, 0, "property '%s' is given twice", name);
		return -EINVAL;
	}
	if (uri->n_properties == PL_KAFKA_PROPERTIES_MAX) {
		pl_diag_at(diag, line, 0, "more than %d properties", PL_KAFKA_PROPERTIES_MAX);
		return -EINVAL;
	}
	uri->properties[uri->n_properties].name = name;
	uri->properties[uri->n_properties++].value = value;
	return 0;
}

static int take_lines(struct pl_kafka_uri *uri, struct pl_diag *diag)
{
	const unsigned int n_of_uri = uri->n_properties;
	unsigned int line = 1;
	char *next;
	int r = 0;

	for (char *text = uri->file_text; r == 0 && text != NULL; text = next, line++) {
		next = strchr(text, '\n');
		if (next != NULL)
			*next++ = '\0';
		r = take_line(uri, text, n_of_uri, line, diag);
	}
	return r;
}

int pl_kafka_uri_read_properties(struct pl_kafka_uri *uri, struct pl_diag *diag)
{
	const char *path = uri->properties_file;
	char *text = NULL;
	size_t len = 0;
	int r;

	if (path == NULL)
		return 0;
	r = pl_file_read_secret(path, sizeof(uri->file_text) - 1, &text, &len);
	if (r < 0)
		return pl_diag_fail(diag, r, "cannot read %s: %s", path, pl_file_secret_trouble(r));
	if (memchr(text, '\0', len) != NULL) {
		r = pl_diag_fail(diag, -EINVAL, "%s is no text: it has a byte 0", path);
	} else {
		memcpy(uri->file_text, text, len + 1);
		r = take_lines(uri, diag);
		if (r < 0 && diag != NULL)
			snprintf(diag->file, sizeof(diag->file), "%s", path);
	}
	explicit_bzero(text, len);
	free(text);
	return r;
}
