using System;

namespace Shop.Inner
{
    /// <summary>A shop {</summary>
    [Serializable]
    public class Shop<T> : Base, IShop where T : class, new()
    {
#region Things
        private readonly string path = @"C:\{";

        public int Size { get; set; } = 1;

        public string Name
        {
            get { return name; }
            private set
            {
                name = $"{value}}}";
            }
        }

        public int Twice => Size * 2;

        public Shop(string name) : base(name)
        {
        }

        [HttpGet("{id}")]
        public async Task<List<T>> Find<K>(
            int id,
            Func<K, bool> filter = null)
            where K : struct
        {
            foreach (var item in items)
            {
                using (var x = new X { Y = 1 })
                {
                    items.Select(y => { return y; });
                }
            }
            return await Task.FromResult(new List<T> { });
        }

        public int Add(int a) =>
            a + 1;
#endregion
        public enum Colour { Red }

        public record Point(int X);
    }
}
