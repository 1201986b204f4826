/* SPDX-License-Identifier: MIT */
/* The separate file of an image's symbols, and the flaws of both that have a name. */
#include "image-priv.h"

const char image_flaw_packed[] = "its .gnu_debugdata unpacks to more than 256 MB, or takes longer "
				 "than 10 s to unpack";
const char image_flaw_debug[] = "its debug sections unpack to more than 1024 MB";

int image_debug_fd(struct image *img)
{
	if (!img->debug_tried)
		img->debug_fd = debugfile_open(img->root, img->build_id, img->uid);
	img->debug_tried = true;
	return img->debug_fd;
}
