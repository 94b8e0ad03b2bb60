// Calls the hooks of a bundle. It lives as long as their runtime: what the
// gateway tells once is kept here.
let scene = {};
let state = new Map();
let known = '{}';
let begun = false;
const write = (value) => JSON.stringify(value) ?? 'null';
const logger = {};
for (const [name, level] of [['debug', 'debug'], ['info', 'info'], ['log', 'info'], ['warn', 'warn'], ['error', 'error']]) {
    logger[name] = console[level];
}
return async (hook, payload, first, ...given) => {
    if (payload.scene !== undefined) scene = payload.scene;
    if (payload.state !== undefined) {
        state = new Map(Object.entries(payload.state));
        known = write(payload.state);
    }
    const emitted = [];
    const events = {
        emit(name, value) {
            emitted.push({ name: String(name), value: value === undefined ? null : value });
        },
    };
    const context = { ...scene, state, events, logger };
    if (!begun && first !== null) await first({ provider: scene.provider }, context, ...given);
    begun = true;
    const out = {};
    if (payload.each !== undefined) {
        out.each = [];
        for (const value of payload.each) {
            out.each.push((await hook(value, context, ...given)) ?? null);
        }
    } else {
        const said = await hook(payload.value, context, ...given);
        out.kept = said === undefined;
        if (!out.kept) out.value = said;
        if (payload.back === true) out.back = payload.value;
    }
    if (emitted.length > 0) out.emitted = emitted;
    // Most plugins remember nothing.
    const now = state.size === 0 ? '{}' : write(Object.fromEntries(state));
    if (now !== known) {
        known = now;
        out.state = Object.fromEntries(state);
    }
    return out;
};
