/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the parts of HTTP requests. */
#include "web/request.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

/* Decodes n bytes of percent-encoded text into dst, terminated. `plus` makes '+' a blank (form
 * encoding). */
static int decode(char *dst, size_t cap, const char *src, size_t n, bool plus)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)src[i];

		if (c == '%') {
			const int byte = n - i > 2 ? pl_parse_percent(src + i) : -1;

			if (byte < 0)
				return -EINVAL;
			c = (unsigned char)byte;
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		if (c < 0x20 || c == 0x7f)
			return -EINVAL;
		if (used + 1 >= cap)
			return -ENAMETOOLONG;
		dst[used++] = (char)c;
	}
	dst[used] = '\0';
	return 0;
}

int pl_http_target_parse(struct pl_http_target *ret, const char *raw)
{
	size_t path_len = strcspn(raw, "?#");
	struct pl_http_target t;
	int r;

	if (raw[0] != '/')
		return -EINVAL;
	r = decode(t.path, sizeof(t.path), raw, path_len, false);
	if (r < 0)
		return r;
	t.query[0] = '\0';
	if (raw[path_len] == '?') {
		const char *query = raw + path_len + 1;
		size_t n = strcspn(query, "#");

		if (n >= sizeof(t.query))
			return -ENAMETOOLONG;
		memcpy(t.query, query, n);
		t.query[n] = '\0';
	}
	*ret = t;
	return 0;
}

int pl_http_query_get(const char *query, const char *name, char *dst, size_t cap)
{
	size_t name_len = strlen(name);

	while (*query != '\0') {
		size_t n = strcspn(query, "&");
		const char *equals = memchr(query, '=', n);
		size_t key_len = equals != NULL ? (size_t)(equals - query) : n;

		if (key_len == name_len && memcmp(query, name, name_len) == 0) {
			const char *value = equals != NULL ? equals + 1 : query + n;

			return decode(dst, cap, value, (size_t)(query + n - value), true) < 0
				       ? -EINVAL
				       : 1;
		}
		query += n;
		if (*query == '&')
			query++;
	}
	return 0;
}

int pl_http_query_unknown(
	const char *query, const char *const *names, size_t n, char *dst, size_t cap)
{
	while (*query != '\0') {
		size_t len = strcspn(query, "&"), key = strcspn(query, "&="), i = 0;

		while (i < n && (strlen(names[i]) != key || memcmp(names[i], query, key) != 0))
			i++;
		if (i == n && key > 0) {
			if (key >= cap)
				key = cap - 1;
			for (size_t k = 0; k < key; k++)
				dst[k] = query[k] > ' ' && query[k] < 0x7f ? query[k] : '?';
			dst[key] = '\0';
			return 1;
		}
		query += len;
		if (*query == '&')
			query++;
	}
	return 0;
}

/* Splits "host", "host:port", "[v6]", "[v6]:port". The port must be a number when it is there. */
static int host_split(const char *host, char *dst, size_t cap)
{
	const char *end;
	size_t n;

	if (host[0] == '[') {
		end = strchr(host, ']');
		if (end == NULL)
			return -EINVAL;
		end++;
	} else {
		end = host + strcspn(host, ":");
	}
	n = (size_t)(end - host);
	if (n == 0 || n >= cap)
		return -EINVAL;
	if (*end == ':') {
		size_t digits = strspn(end + 1, "0123456789");

		if (digits > 5 || end[1 + digits] != '\0')
			return -EINVAL;
	} else if (*end != '\0') {
		return -EINVAL;
	}
	memcpy(dst, host, n);
	dst[n] = '\0';
	/* "localhost." is the same name as "localhost". */
	if (n > 1 && dst[n - 1] == '.')
		dst[n - 1] = '\0';
	return 0;
}

bool pl_http_is_loopback(const struct pl_addr *a)
{
	static const struct pl_addr v6_loopback = { { [15] = 1 } };

	return (pl_addr_is_v4(a) && a->b[12] == 127) || pl_addr_equal(a, &v6_loopback);
}

bool pl_http_host_allowed(const char *host, const struct pl_http_hosts *hosts)
{
	char name[256];
	struct pl_addr addr;

	if (host_split(host, name, sizeof(name)) < 0)
		return false;
	if (pl_parse_addr(name, &addr) == 0)
		return pl_http_is_loopback(&hosts->listen)
			       ? pl_http_is_loopback(&addr) || pl_addr_equal(&addr, &hosts->listen)
			       : true;
	if (strcasecmp(name, "localhost") == 0)
		return true;
	for (size_t i = 0; i < hosts->n; i++) {
		if (strcasecmp(name, hosts->names[i]) == 0)
			return true;
	}
	return false;
}

/* An element of a list header: "gzip;q=0.5, …". */
struct element {
	char token[96]; /* lower case, without parameters; empty when it was too long */
	unsigned int q; /* in thousandths; 0 = not acceptable */
};

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ); anything else counts as 0. */
static unsigned int parse_q(const char *s, size_t n)
{
	unsigned int q, scale = 100;

	if (n == 0 || (s[0] != '0' && s[0] != '1') || (n > 1 && s[1] != '.') || n > 5)
		return 0;
	q = (unsigned int)(s[0] - '0') * 1000;
	for (size_t i = 2; i < n; i++, scale /= 10) {
		if (s[i] < '0' || s[i] > '9')
			return 0;
		q += (unsigned int)(s[i] - '0') * scale;
	}
	return q > 1000 ? 0 : q;
}

static void copy_lower(char *dst, size_t cap, const char *s, size_t n)
{
	if (n >= cap)
		n = 0;
	for (size_t i = 0; i < n; i++)
		dst[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
	dst[n] = '\0';
}

/* Reads the next element at *s, which moves behind it. Returns false at the end. */
static bool element_next(const char **s, struct element *ret)
{
	const char *p = *s;
	size_t n;

	p += strspn(p, " \t,");
	if (*p == '\0')
		return false;
	n = strcspn(p, ";, \t");
	copy_lower(ret->token, sizeof(ret->token), p, n);
	ret->q = 1000;
	p = skip_blanks(p + n);
	while (*p == ';') {
		const char *value;
		size_t key, len;

		p = skip_blanks(p + 1);
		key = strcspn(p, "=;, \t");
		if (p[key] != '=') {
			p = skip_blanks(p + key);
			continue;
		}
		value = p + key + 1;
		len = strcspn(value, ";, \t");
		if (key == 1 && (p[0] == 'q' || p[0] == 'Q'))
			ret->q = parse_q(value, len);
		p = skip_blanks(value + len);
	}
	/* Anything that is not list syntax ends the element. */
	p += strcspn(p, ",");
	*s = p;
	return true;
}

bool pl_http_wants_gzip(const char *accept_encoding)
{
	unsigned int any = 0;
	struct element e;

	if (accept_encoding == NULL)
		return false;
	while (element_next(&accept_encoding, &e)) {
		if (strcmp(e.token, "gzip") == 0 || strcmp(e.token, "x-gzip") == 0)
			return e.q > 0;
		if (strcmp(e.token, "*") == 0)
			any = e.q;
	}
	return any > 0;
}
