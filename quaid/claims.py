"""Do two texts say the same?"""
