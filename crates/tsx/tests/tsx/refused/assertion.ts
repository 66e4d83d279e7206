const one = <number>JSON.parse("1");
export = one;
