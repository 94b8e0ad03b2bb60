// fetch for plugins: the gateway sends the request, to the hosts of the manifest alone.
const ask = globalThis.host;
const lower = (headers) => {
    const pairs = headers && typeof headers[Symbol.iterator] === 'function' ? [...headers] : Object.entries(headers ?? {});
    return pairs.map(([name, value]) => [String(name).toLowerCase(), String(value)]);
};
return {
    async fetch(url, init = {}) {
        const body = init.body === undefined || init.body === null ? null : String(init.body);
        const method = String(init.method ?? 'GET').toUpperCase();
        const answer = await ask('fetch', { url: String(url), method, headers: lower(init.headers), body });
        const headers = new Map(answer.headers);
        return {
            status: answer.status,
            ok: answer.status >= 200 && answer.status < 300,
            headers: {
                get: (name) => headers.get(String(name).toLowerCase()) ?? null,
                has: (name) => headers.has(String(name).toLowerCase()),
                entries: () => headers.entries(),
            },
            text: async () => answer.body,
            json: async () => JSON.parse(answer.body),
        };
    },
};
