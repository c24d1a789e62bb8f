/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers the interfaces of a tap, and describes them. */
#include "service/tap_places.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "export/exposition.h"
#include "flow/state.h"
#include "netio/uri.h"
#include "tap/source.h"

#define MAC_TEXT 18

/* ---- sources ---- */

/* Returns whether packets are seen at an interface: not records from others, nor drops. */
static bool is_interface(const char *uri)
{
	return pl_tap_kernel_is(uri) || ((pl_port_uri_can(uri) & PL_PORT_CAN_INTERFACE) != 0 &&
						!pl_tap_source_is_tmpkt(uri));
}

bool pl_tap_is_of_this_host(const struct pl_tap_service *t)
{
	bool own = t->o->n_sources > 0;

	for (size_t i = 0; i < t->o->n_sources; i++)
		own = own && is_interface(t->o->sources[i]);
	return own;
}

/* ---- numbers ---- */

/* Copies the interface's name: the text between the first ':' and '?'. */
static void name_of(char ret[IF_NAMESIZE], const char *uri)
{
	const char *name = strchr(uri, ':') + 1;
	size_t n = strcspn(name, "?");

	n = n < IF_NAMESIZE ? n : IF_NAMESIZE - 1;
	memcpy(ret, name, n);
	ret[n] = '\0';
}

/* Returns the namespace's inode, as lsns(8) shows it; 0: unknown. */
static uint64_t own_namespace(void)
{
	struct stat st;

	return stat("/proc/thread-self/ns/net", &st) == 0 ? st.st_ino : 0;
}

int pl_tap_places_find(struct pl_tap_service *t, struct pl_diag *diag)
{
	t->n_places = 0;
	t->netns = own_namespace();
	for (size_t i = 0; i < t->o->n_sources; i++) {
		if (!is_interface(t->o->sources[i]))
			continue;
		if (t->n_places == PL_TAP_PLACES_MAX) {
			pl_diag_set(diag, "at most %d interfaces", PL_TAP_PLACES_MAX);
			return -EINVAL;
		}
		t->places[t->n_places] = (struct pl_tap_place){ .source = i };
		name_of(t->places[t->n_places++].name, t->o->sources[i]);
	}
	return pl_tap_places_fit(t, t->o->point, diag);
}

int pl_tap_places_fit(const struct pl_tap_service *t, uint16_t point, struct pl_diag *diag)
{
	const struct pl_tap_place *last = &t->places[t->n_places > 0 ? t->n_places - 1 : 0];

	if (t->n_places == 0 || pl_tap_place_point(t, last->source, point) <= PL_OBS_POINT_MASK)
		return 0;
	pl_diag_set(diag,
		"%u interfaces are numbered from observation point %u on, of which %d is the last",
		t->n_places, point, PL_OBS_POINT_MASK);
	return -EINVAL;
}

uint16_t pl_tap_place_point(const struct pl_tap_service *t, size_t source, uint16_t point)
{
	const unsigned int first = t->n_places > 1 && point == 0 ? 1 : point;

	for (unsigned int i = 0; i < t->n_places; i++) {
		if (t->places[i].source == source)
			return (uint16_t)(first + i);
	}
	return point;
}

/* ---- descriptions ---- */

/* Looks up the interface: if it was created again, it has another number. When its name is gone, it
 * may have been renamed, and is found by its number. */
static void look(struct pl_tap_place *place, struct pl_link_id *ret)
{
	char name[IF_NAMESIZE];

	if (!pl_link_identify(place->name, ret) && place->ifindex != 0 &&
		if_indextoname((unsigned int)place->ifindex, name) != NULL &&
		pl_link_identify(name, ret))
		memcpy(place->name, name, sizeof(name));
	place->ifindex = ret->ifindex;
}

uint32_t pl_tap_places_points(struct pl_tap_service *t, struct pl_flow_point *ret)
{
	memset(ret, 0, t->n_places * sizeof(*ret));
	for (unsigned int i = 0; i < t->n_places; i++) {
		struct pl_tap_place *place = &t->places[i];
		struct pl_link_id id;

		look(place, &id);
		memcpy(ret[i].name, place->name, sizeof(place->name));
		memcpy(ret[i].mac, id.mac, sizeof(id.mac));
		ret[i].netns = t->netns;
		ret[i].ifindex = (uint32_t)id.ifindex;
		ret[i].point = pl_tap_place_point(t, place->source, t->point);
	}
	return t->n_places;
}

static void put_mac(char ret[MAC_TEXT], const uint8_t mac[6])
{
	snprintf(ret, MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		mac[4], mac[5]);
}

void pl_tap_places_json(struct pl_tap_service *t, struct pl_json *json)
{
	pl_json_key(json, "interfaces");
	pl_json_array(json);
	for (unsigned int i = 0; i < t->n_places; i++) {
		struct pl_tap_place *place = &t->places[i];
		struct pl_link_id id;
		char mac[MAC_TEXT];

		look(place, &id);
		put_mac(mac, id.mac);
		pl_json_object(json);
		pl_json_text(json, "source", t->o->sources[place->source]);
		pl_json_number(json, "point", pl_tap_place_point(t, place->source, t->point));
		pl_json_text(json, "interface", place->name);
		pl_json_number(json, "ifindex", (uint64_t)id.ifindex);
		pl_json_text(json, "mac", mac);
		pl_json_number(json, "netns", t->netns);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

void pl_tap_places_family(struct pl_exposition *page)
{
	pl_exposition_family(page, "pathline_tap_interface_info", PL_METRIC_GAUGE, NULL,
		"Interface at an observation point of a tap, as labels: its number (ifindex, 0 while it is not there), "
		"its MAC address and its network namespace (netns, as lsns shows it); always 1.");
}

static void put_sample(const struct pl_tap_service *t, const struct pl_tap_place *place,
	const struct pl_link_id *id, const char *tap, struct pl_exposition *page)
{
	const uint16_t point = pl_tap_place_point(t, place->source, t->point);
	const char *source = t->o->sources[place->source];
	const unsigned int first = tap == NULL;
	char mac[MAC_TEXT];
	const struct pl_label labels[] = {
		{ .name = "tap", .form = PL_LABEL_TEXT, .text = tap },
		{ .name = "source", .form = PL_LABEL_TEXT, .text = source },
		{ .name = "point", .form = PL_LABEL_U64, .number = point },
		{ .name = "interface", .form = PL_LABEL_TEXT, .text = place->name },
		{ .name = "ifindex", .form = PL_LABEL_U64, .number = (uint64_t)id->ifindex },
		{ .name = "mac", .form = PL_LABEL_TEXT, .text = mac },
		{ .name = "netns", .form = PL_LABEL_U64, .number = t->netns },
	};

	put_mac(mac, id->mac);
	pl_exposition_u64(page, labels + first, 7 - first, 1);
}

void pl_tap_places_samples(struct pl_tap_service *t, const char *tap, struct pl_exposition *page)
{
	for (unsigned int i = 0; i < t->n_places; i++) {
		struct pl_link_id id;

		look(&t->places[i], &id);
		put_sample(t, &t->places[i], &id, tap, page);
	}
}

void pl_tap_places_text(const struct pl_tap_service *t, struct pl_buf *text)
{
	const struct pl_tap_place *last;

	if (t->n_places < 2)
		return;
	last = &t->places[t->n_places - 1];
	pl_buf_printf(text, ", observation points %u (%s) to %u (%s)",
		pl_tap_place_point(t, t->places[0].source, t->point), t->places[0].name,
		pl_tap_place_point(t, last->source, t->point), last->name);
}
