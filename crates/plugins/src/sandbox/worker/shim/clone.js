// structuredClone: values without code, with their cycles.
(function () {
    'use strict';
    const refuse = (value) => {
        const name = typeof value === 'object' ? Object.prototype.toString.call(value) : String(value);
        throw new DOMException(`${name} could not be cloned`, 'DataCloneError');
    };
    const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
    const copy = (value, seen) => {
        if (typeof value === 'function' || typeof value === 'symbol') refuse(value);
        if (typeof value !== 'object' || value === null) return value;
        if (seen.has(value)) return seen.get(value);
        const keep = (made) => {
            seen.set(value, made);
            return made;
        };
        const fill = (made) => {
            for (const key of Object.keys(value)) made[key] = copy(value[key], seen);
            return made;
        };
        if (Array.isArray(value)) return fill(keep(new Array(value.length)));
        if (value instanceof Date) return keep(new Date(value.getTime()));
        if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
        if (value instanceof Map) {
            const made = keep(new Map());
            for (const [key, item] of value) made.set(copy(key, seen), copy(item, seen));
            return made;
        }
        if (value instanceof Set) {
            const made = keep(new Set());
            for (const item of value) made.add(copy(item, seen));
            return made;
        }
        if (value instanceof ArrayBuffer) return keep(value.slice(0));
        if (ArrayBuffer.isView(value)) {
            const buffer = copy(value.buffer, seen);
            const length = value instanceof DataView ? value.byteLength : value.length;
            return keep(new value.constructor(buffer, value.byteOffset, length));
        }
        if (value instanceof Error) {
            const made = keep(new (ERRORS[value.name] ?? Error)(value.message));
            if ('cause' in value) made.cause = copy(value.cause, seen);
            return made;
        }
        if (value instanceof Boolean || value instanceof Number || value instanceof String) {
            return keep(Object(value.valueOf()));
        }
        if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) {
            refuse(value);
        }
        return fill(keep({}));
    };
    return {
        structuredClone: function structuredClone(value) {
            return copy(value, new Map());
        },
    };
})
