(function (native) { return { Intl: {}, date: {}, number() { return String(this); } }; })
