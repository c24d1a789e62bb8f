/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolves the addresses of UDP ports. */
#include "netio/udp_address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

/* Splits "name:port" or "[fe80::1%eth0]:port" in place; numeric addresses are parsed before. */
static int split_host(char *text, char **ret_host, uint16_t *ret_port, struct pl_diag *diag)
{
	char *colon = strrchr(text, ':');
	uint64_t port;

	if (colon == NULL || pl_parse_u64(colon + 1, &port) < 0 || port > 65535) {
		pl_diag_set(diag, "'%s': not HOST:PORT with a port number up to 65535", text);
		return -EINVAL;
	}
	*colon = '\0';
	if (text[0] == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		text++;
	}
	if (*text == '\0' || strpbrk(text, "/[] ") != NULL) {
		pl_diag_set(diag, "'%s' is not a host name or address", text);
		return -EINVAL;
	}
	*ret_host = text;
	*ret_port = (uint16_t)port;
	return 0;
}

int pl_udp_resolve(const char *target, struct pl_sockaddr *ret, struct pl_diag *diag)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM }, *list;
	char text[PL_URI_TEXT_MAX], service[8], *host;
	struct pl_addr addr;
	uint16_t port;
	int r;

	if (pl_parse_endpoint(target, &addr, &port) == 0) {
		if (ret != NULL)
			pl_sockaddr_set(ret, &addr, port);
		return 0;
	}
	snprintf(text, sizeof(text), "%s", target);
	r = split_host(text, &host, &port, diag);
	if (r < 0 || ret == NULL)
		return r;
	snprintf(service, sizeof(service), "%u", port);
	r = getaddrinfo(host, service, &hints, &list);
	if (r != 0) {
		pl_diag_set(diag, "host '%s': %s", host,
			r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
		return -EADDRNOTAVAIL;
	}
	memset(ret, 0, sizeof(*ret));
	memcpy(&ret->sa, list->ai_addr, list->ai_addrlen);
	ret->len = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

/* Parses address and port of "udp://[::]:32766?rcvbuf=1MiB"; false for another URI or a name. */
static bool endpoint_of(const char *uri, struct pl_addr *ret, uint16_t *ret_port)
{
	static const char scheme[] = "udp://";
	char text[PL_URI_TEXT_MAX];

	if (strncmp(uri, scheme, strlen(scheme)) != 0)
		return false;
	snprintf(text, sizeof(text), "%s", uri + strlen(scheme));
	text[strcspn(text, "?")] = '\0';
	return pl_parse_endpoint(text, ret, ret_port) == 0;
}

bool pl_port_uri_v6only(const char *uri, const char *other)
{
	const struct pl_addr every_v4 = pl_sockaddr_every_v4();
	struct pl_addr a, b;
	uint16_t port, beside;

	return endpoint_of(uri, &a, &port) && endpoint_of(other, &b, &beside) && port != 0 &&
	       port == beside && pl_addr_is_unspecified(&a) && !pl_addr_equal(&a, &every_v4) &&
	       pl_addr_equal(&b, &every_v4);
}

char *pl_udp_port_name(const struct pl_addr *addr, uint16_t port)
{
	char text[PL_ADDR_TEXT_MAX], *name = NULL;

	pl_format_addr(text, addr);
	if (asprintf(&name, pl_addr_is_v4(addr) ? "udp://%s:%u" : "udp://[%s]:%u", text, port) < 0)
		return NULL;
	return name;
}
