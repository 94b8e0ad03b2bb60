// The wire types that the gateway generates. They come by a relative path, so
// that the built package carries them along and depends on nothing.
export type * from "../../protocol/src/index.js";
