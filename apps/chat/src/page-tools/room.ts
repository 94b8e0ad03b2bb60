/**
 * Runs code of plugins in a frame whose page comes from the gateway, under a
 * policy that lets nothing out. A frame written into this page would inherit
 * the page's own policy, which allows no inline script.
 */
import { codeRunner } from "@toolyard/react";

export const runInRoom = codeRunner({ url: "/sandbox.html" });
