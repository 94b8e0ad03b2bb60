// The functions of compute. Lists count as their items, so sum([1, 2]) is sum(1, 2).
const numbers = (name, values) => {
    const items = values.flatMap((value) =>
        Array.isArray(value) ? value.flat(Infinity)
            : typeof value === 'object' && value !== null ? Object.values(value)
                : [value]);
    for (const item of items) {
        if (typeof item !== 'number' || Number.isNaN(item)) {
            throw new TypeError(`${name}: ${JSON.stringify(item) ?? String(item)} is not a number`);
        }
    }
    return items;
};
const some = (name, values) => {
    const items = numbers(name, values);
    if (items.length === 0) throw new RangeError(`${name}: there are no numbers`);
    return items;
};
// By the decimal text, so that 1.005 rounds to 1.01; halves go away from zero.
const shift = (number, places) => {
    const [digits, exponent = '0'] = String(number).split('e');
    return Number(`${digits}e${Number(exponent) + places}`);
};
return {
    round(number, places = 0) {
        const [value, digits] = numbers('round', [number, places]);
        if (!Number.isInteger(digits) || Math.abs(digits) > 100) {
            throw new RangeError('round: the digits are a whole number from -100 to 100');
        }
        if (!Number.isFinite(value)) return value;
        return Math.sign(value) * shift(Math.round(shift(Math.abs(value), digits)), -digits);
    },
    min: (...values) => some('min', values).reduce((a, b) => (b < a ? b : a)),
    max: (...values) => some('max', values).reduce((a, b) => (b > a ? b : a)),
    sum: (...values) => numbers('sum', values).reduce((a, b) => a + b, 0),
    avg(...values) {
        const items = some('avg', values);
        return items.reduce((a, b) => a + b, 0) / items.length;
    },
    count: (...values) => numbers('count', values).length,
};
