import { Component } from 'kit';

export interface Item<T = string> {
  id: number;
  find(id: number): T;
}

export type Options = {
  deep: boolean;
};

enum Colour {
  Red,
}

declare module Widgets {
  export function make(): void;
}

@Component({
  selector: 'shop',
  template: `<p>{{ name }}</p>`,
})
export class Shop implements Item<Map<string, number>>, Other {
  @Input() name: string;

  constructor(private readonly http: Http, @Inject(TOKEN) private token: string) {}

  public async find<K extends keyof Item>(
    id: number,
    options?: { deep: boolean },
  ): Promise<Map<string, Item<K>>> {
    return this.http.get(`/${id}`, () => { return 1; });
  }

  shape(): { area: number } {
    return { area: 1 };
  }

  private on: Handler<Event, void> = (event) => {
    this.token = event;
  };
}

export const View: React.FC<Props> = ({ items }) => {
  return (
    <ul>
      {items.map((item) => (
        <li key={item.id}>Don't {item.name}</li>
      ))}
    </ul>
  );
};

export const Small = ({ name }: Props) => (
  <b>
    {name}
  </b>
);

export function generic<T extends { id: number }>(value: T): value is T {
  return true;
}
