// function no() {
import { read } from "./read";

export type Price = number | {
  amount: number;
};

export interface Item {
  name: string;
  price(): Price;
}

export enum Colour {
  Red = "red}",
}

export abstract class Shop<T extends Item> implements Iterable<T> {
  private items: T[] = [];

  constructor(private readonly name: string) {}

  get size(): number {
    return this.items.length;
  }

  async add(item: T): Promise<{ id: number }> {
    this.items.push(item);
    return { id: 1 };
  }

  static of<K extends Item>(
    items: K[],
  ): Shop<K> | undefined {
    return undefined;
  }

  *[Symbol.iterator]() {
    yield* this.items;
  }
}

export namespace Tools {
  export function twice(price: number): number {
    return price * 2;
  }
}

const load = async <T,>(path: string): Promise<T> => {
  return (await read(path)) as T;
};

export default function main(): void {
  load<Item>("a");
}
